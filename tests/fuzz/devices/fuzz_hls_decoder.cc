// The kernels for FPGAs, compiled for this processor: whatever a file or a packed image is, and whatever its commands were
// turned into on their way to the card, nothing outside the four buffers is touched, every image is completed, and what
// is done is what the CPU's decoder and the reference functions make. The first eight bytes choose crop, tensor and
// damage; then comes a JPEG file or a packed image.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "hls/decoder/jpeg/decode_jpeg.h"
#include "hls/decoder/packed/decode_packed.h"
#include "hls/host/completions.h"
#include "hls/host/planner.h"
#include "kernels/cpu/jpeg/decoder.h"
#include "kernels/tensor/reference.h"
#include "kernels/tensor/store_table.h"
#include "tests/support/host/guarded_bytes.h"

namespace {

using namespace millrace;
using kernels::Size;
using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kChoiceBytes = 8;
constexpr std::int64_t kMostPixels = 1 << 16;  // larger images only take longer

void require(bool holds) {
  if (!holds) std::abort();
}

int below(std::mt19937& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

kernels::Box box_in(Size size, std::mt19937& random) {
  const int width = 1 + below(random, size.width), height = 1 + below(random, size.height);
  return {below(random, size.width - width + 1), below(random, size.height - height + 1), width, height};
}

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + hls::kUnit - 1) / hls::kUnit * hls::kUnit;
}

// Ends at a page that may not be touched.
struct CardMemory {
  std::span<std::byte> bytes;
  GuardedBytes memory;
  explicit CardMemory(std::size_t size) : memory(rounded_up(size)) { bytes = memory.last(rounded_up(size)); }
  hls::Burst* words() { return reinterpret_cast<hls::Burst*>(bytes.data()); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(bytes.size()); }
};

struct Case {
  Bytes file;
  hls::Source kind;
  hls::BatchRecipe recipe;
  hls::ImageRequest request;
};

// The tensor of a card that was given these commands; nullopt: not done.
std::optional<std::vector<std::byte>> run(const Case& of, std::span<const std::byte> commands) {
  const std::size_t tensor =
      kernels::StoreTable(of.recipe.store).image_bytes({of.request.window.width, of.request.window.height});
  CardMemory kept(commands.size()), encoded(of.file.size() + hls::kReadAhead), tensors(tensor), completions(16);
  std::ranges::copy(commands, kept.bytes.begin());
  std::memcpy(encoded.bytes.data(), of.file.data(), of.file.size());
  (of.kind == hls::Source::kPacked ? decode_packed : decode_jpeg)(kept.words(), encoded.words(), tensors.words(),
                                                                  completions.words(), kept.size(), encoded.size(),
                                                                  tensors.size(), completions.size(), 77);
  hls::ImageOutcome outcome;
  require(hls::read_completions(completions.bytes, 77, {&outcome, 1}).empty());
  if (outcome.reason != hls::Reason::kDone) return std::nullopt;
  return std::vector(tensors.bytes.begin(), tensors.bytes.begin() + static_cast<std::ptrdiff_t>(tensor));
}

// The whole picture by the CPU's decoder; nothing: it is not its business.
std::vector<std::uint8_t> decode(const Case& of, Size size, int channels) {
  static kernels::jpeg::Decoder decoder;
  static kernels::packed::PackedImage packed;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.width) * size.height * channels);
  const kernels::MutableU8View out{pixels.data(), size.width, size.height, channels,
                                   std::ptrdiff_t{size.width} * channels};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  auto outcome = kernels::jpeg::Outcome::kNotHere;
  if (of.kind == hls::Source::kPacked) {
    std::vector<std::uint8_t> padded(of.file.begin(), of.file.end());
    padded.resize(padded.size() + kernels::packed::kPadding);
    require(packed.read({padded.data(), of.file.size()}, kernels::packed::Check::kShape));
    outcome = decoder.decode(packed, kernels::whole(size), out, deadline);
  } else if (const auto header = kernels::jpeg::read_header(of.file)) {
    outcome = decoder.decode(*header, kernels::whole(size), out, deadline);
  } else {
    return {};  // chroma of a quarter of the columns
  }
  require(outcome == kernels::jpeg::Outcome::kDecoded);
  return pixels;
}

void compare(const Case& of, Size size, int channels, const std::vector<std::byte>& tensor) {
  const std::vector<std::uint8_t> pixels = decode(of, size, channels);
  if (pixels.empty()) return;
  const kernels::U8View picture{pixels.data(), size.width, size.height, channels,
                                std::ptrdiff_t{size.width} * channels};
  const kernels::U8View crop = picture.crop(of.request.crop);
  const kernels::Box& window = of.request.window;
  std::vector<std::uint8_t> resampled(static_cast<std::size_t>(window.width) * window.height * channels);
  const kernels::MutableU8View out{resampled.data(), window.width, window.height, channels,
                                   std::ptrdiff_t{window.width} * channels};
  kernels::reference::resample({.channels = channels,
                                .source = crop.size(),
                                .target = of.request.resized,
                                .window = window,
                                .filter = of.recipe.filter,
                                .order = of.recipe.order},
                               crop, out);
  std::vector<std::byte> expected(tensor.size());
  kernels::reference::store(of.recipe.store, out, of.request.flip, expected);
  require(tensor == expected);
}

// Anything but the number of images and the cookie.
void meddle(std::span<std::byte> commands, std::mt19937& random) {
  const bool in_descriptor = below(random, 2) == 0;
  for (int count = 1 + below(random, 30); count > 0; --count) {
    std::size_t at = 4 + random() % (commands.size() - 4);
    if (in_descriptor) at = sizeof(hls::Batch) + 4 + random() % (sizeof(hls::Descriptor) - 4);
    if (at >= sizeof(hls::Batch) && at < sizeof(hls::Batch) + 4) continue;
    commands[at] =
        below(random, 2) == 0 ? static_cast<std::byte>(random()) : commands[at] ^ std::byte(1U << below(random, 8));
  }
}

struct Picture {
  Size size;
  int channels;
};

std::optional<Picture> picture_of(Bytes file, hls::Source kind) {
  if (kind == hls::Source::kPacked) {
    kernels::packed::PackedImage image;
    if (!image.read(file, kernels::packed::Check::kShape)) return std::nullopt;
    return Picture{image.header().size, image.header().components};
  }
  const auto header = kernels::jpeg::read_header(file, kernels::jpeg::Chroma::kQuarter);
  return header ? std::optional(Picture{header->size, header->components}) : std::nullopt;
}

hls::BatchRecipe draw_recipe(std::mt19937& random) {
  return {.store = {.dtype = static_cast<kernels::DType>(below(random, 4)),
                    .layout = static_cast<kernels::Layout>(below(random, 2)),
                    .channels = static_cast<kernels::ChannelOrder>(below(random, 3))},
          .filter = static_cast<kernels::Filter>(below(random, 6)),
          .order = static_cast<kernels::PassOrder>(below(random, 2))};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kChoiceBytes + 4) return 0;
  Case one{
      .file = {data + kChoiceBytes, size - kChoiceBytes}, .kind = hls::Source::kJpegScan, .recipe = {}, .request = {}};
  if (std::memcmp(one.file.data(), "MRPK", 4) == 0) one.kind = hls::Source::kPacked;
  const auto picture = picture_of(one.file, one.kind);
  if (!picture || std::int64_t{picture->size.width} * picture->size.height > kMostPixels) return 0;
  std::seed_seq seed(data, data + kChoiceBytes);
  std::mt19937 random(seed);
  one.recipe = draw_recipe(random);
  one.request = {.file_untrusted = one.file, .crop = box_in(picture->size, random), .kind = one.kind};
  one.request.resized = {1 + below(random, 90), 1 + below(random, 90)};
  one.request.window = box_in(one.request.resized, random);
  one.request.flip = static_cast<kernels::Flip>(below(random, 2));

  std::vector<std::byte> commands(std::size_t{1} << 18);
  hls::Planner planner(one.recipe);
  planner.begin(commands, 1);
  if (!planner.add(one.request).empty()) return 0;
  planner.finish();
  commands.resize(planner.command_bytes());
  const auto tensor = run(one, commands);
  if (tensor) compare(one, picture->size, picture->channels, *tensor);
  meddle(commands, random);
  run(one, commands);
  return 0;
}
