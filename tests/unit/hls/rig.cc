#include "tests/unit/hls/rig.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "hls/decoder/answer.h"
#include "kernels/tensor/reference.h"
#include "kernels/tensor/store_table.h"
#include "tests/unit/kernels/cuda/reconstruct_rig.h"

#if !defined(__SANITIZE_ADDRESS__) && defined(__has_feature)  // g++ defines the first, clang has the second
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define MILLRACE_POISON(at, count) ASAN_POISON_MEMORY_REGION(at, count)
#define MILLRACE_UNPOISON(at, count) ASAN_UNPOISON_MEMORY_REGION(at, count)
#else
#define MILLRACE_POISON(at, count) static_cast<void>(0)
#define MILLRACE_UNPOISON(at, count) static_cast<void>(0)
#endif

namespace millrace {
namespace {

constexpr std::byte kGuardByte{0xC7};
constexpr std::uint8_t kUnwrittenHls = 0xA5;
constexpr std::align_val_t kWordAlign{alignof(hls::Burst)};

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + hls::kUnit - 1) / hls::kUnit * hls::kUnit;
}

bool all_are(std::span<const std::byte> bytes, std::byte value) {
  return std::ranges::all_of(bytes, [=](std::byte byte) { return byte == value; });
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes, std::uint8_t fill)
    : data_(static_cast<std::byte*>(::operator new(bytes + 2 * kGuard, kWordAlign))), size_(bytes) {
  std::memset(data_, std::to_integer<int>(kGuardByte), bytes + 2 * kGuard);
  std::memset(data_ + kGuard, fill, bytes);
  MILLRACE_POISON(data_, kGuard);
  MILLRACE_POISON(data_ + kGuard + size_, kGuard);
}

GuardedMemory::~GuardedMemory() {
  MILLRACE_UNPOISON(data_, size_ + 2 * kGuard);
  ::operator delete(data_, kWordAlign);
}

bool GuardedMemory::is_intact() {
  MILLRACE_UNPOISON(data_, size_ + 2 * kGuard);
  return all_are({data_, kGuard}, kGuardByte) && all_are({data_ + kGuard + size_, kGuard}, kGuardByte);
}

HlsRequest whole_tensor(const File& file, const kernels::Box& crop, kernels::Size size, kernels::Flip flip) {
  return {&file, crop, size, kernels::whole(size), flip};
}

HlsRunner::HlsRunner(const hls::BatchRecipe& recipe, HlsKernel kernel, hls::Source kind)
    : recipe_(recipe), kernel_(kernel), kind_(kind), planner_(recipe) {}

std::vector<HlsImage> HlsRunner::run(const std::vector<HlsRequest>& requests) {
  std::vector<std::byte> sources;
  std::vector<std::size_t> places;
  for (const HlsRequest& request : requests) {
    sources.resize(sources.size() + places.size() % 7, std::byte{0xFF});
    places.push_back(sources.size());
    sources.insert(sources.end(), request.file->begin(), request.file->end());
  }
  GuardedMemory encoded(sources.size() + hls::kReadAhead);
  std::ranges::copy(sources, encoded.bytes().begin());

  const kernels::StoreTable store(recipe_.store);
  std::vector<std::byte> commands(std::size_t{8} << 20);
  planner_.begin(commands, static_cast<std::uint32_t>(requests.size()));
  std::vector<HlsImage> images(requests.size());
  std::vector<std::size_t> planned, tensors;  // which request each image is of; where its tensor begins
  std::size_t tensor_bytes = 0, tensors_end = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const HlsRequest& request = requests[i];
    images[i].refusal = planner_.add({.file_untrusted = file_bytes(*request.file),
                                      .at = places[i],
                                      .crop = request.crop,
                                      .resized = request.resized,
                                      .window = request.window,
                                      .flip = request.flip,
                                      .tensor = tensor_bytes,
                                      .kind = kind_,
                                      .stored = request.stored});
    if (!images[i].refusal.empty()) continue;
    planned.push_back(i);
    tensors.push_back(tensor_bytes);
    tensors_end = tensor_bytes + store.image_bytes({request.window.width, request.window.height});
    tensor_bytes = rounded_up(tensors_end);
  }
  if (planned.empty()) return images;
  planner_.finish();
  commands.resize(planner_.command_bytes());
  if (meddle) meddle(commands);

  GuardedMemory kept(commands.size()), made(tensors_end, kUnwrittenHls);
  GuardedMemory completions(planned.size() * sizeof(hls::Completion), kUnwrittenHls);
  std::ranges::copy(commands, kept.bytes().begin());
  phase_ = static_cast<std::uint8_t>(phase_ % 255 + 1);
  kernel_(kept.words(), encoded.words(), made.words(), completions.words(), kept.size(), encoded.size(), made.size(),
          completions.size(), phase_);

  REQUIRE((kept.is_intact() && encoded.is_intact() && made.is_intact() && completions.is_intact()));
  std::vector<hls::ImageOutcome> outcomes(planned.size());
  REQUIRE(hls::read_completions(completions.bytes(), phase_, outcomes) == "");
  for (std::size_t n = 0; n < planned.size(); ++n) {
    HlsImage& image = images[planned[n]];
    const kernels::Box& window = requests[planned[n]].window;
    const auto bytes = store.image_bytes({window.width, window.height});
    const auto tensor = made.bytes().subspan(tensors[n], bytes);
    image.outcome = outcomes[n];
    image.tensor.assign(tensor.begin(), tensor.end());
    if (meddle) continue;
    if (kernel_ != answer) REQUIRE(image.outcome.sum == (image.is_done() ? hls::tensor_sum(tensor) : 0));
    const std::size_t end = n + 1 < planned.size() ? tensors[n + 1] : tensors_end;
    REQUIRE(all_are(made.bytes().subspan(tensors[n] + bytes, end - tensors[n] - bytes), std::byte{kUnwrittenHls}));
  }
  return images;
}

std::vector<std::byte> expected_tensor(const HlsRequest& request, const hls::BatchRecipe& recipe) {
  const kernels::cuda::BatchRecipe cuda{.size = {request.window.width, request.window.height},
                                        .store = recipe.store,
                                        .filter = recipe.filter,
                                        .order = recipe.order};
  return reference_tensor(*request.file, jpeg_size(*request.file).value(), cuda,
                          {.crop = request.crop,
                           .flip = request.flip,
                           .resized = request.resized,
                           .left = request.window.left,
                           .top = request.window.top});
}

std::vector<std::byte> expected_tensor(const kernels::U8View& pixels, const HlsRequest& request,
                                       const hls::BatchRecipe& recipe) {
  const kernels::Size size{request.window.width, request.window.height};
  const kernels::U8View crop = pixels.crop(request.crop);
  std::vector<std::uint8_t> resampled(static_cast<std::size_t>(size.width) * size.height * crop.channels);
  const kernels::MutableU8View picture{resampled.data(), size.width, size.height, crop.channels,
                                       std::ptrdiff_t{size.width} * crop.channels};
  kernels::reference::resample({.channels = crop.channels,
                                .source = crop.size(),
                                .target = request.resized,
                                .window = request.window,
                                .filter = recipe.filter,
                                .order = recipe.order},
                               crop, picture);
  std::vector<std::byte> tensor(kernels::StoreTable(recipe.store).image_bytes(size));
  kernels::reference::store(recipe.store, picture, request.flip, tensor);
  return tensor;
}

std::optional<kernels::Size> jpeg_size(const File& file) {
  const auto header = kernels::jpeg::read_header(file_bytes(file), kernels::jpeg::Chroma::kQuarter);
  return header ? std::optional(header->size) : std::nullopt;
}

}  // namespace millrace
