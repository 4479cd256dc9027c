#include "kernels/cuda/plan/picture_plan.h"

#include <cmath>
#include <limits>

#include "kernels/cuda/augment/augment_store.h"
#include "kernels/cuda/plan/picture_steps.h"
#include "kernels/tensor/element.h"

namespace millrace::kernels::cuda {
namespace {

constexpr std::int64_t kMostTensorBytes = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t kMostWork = std::uint64_t{1} << 28;  // pixels times steps; the batch waits for it
constexpr int kMostPlace = 1 << 28;                          // of a canvas; sums of two fit

bool is_empty_or_more(Size size) {
  return size.width >= 0 && size.height >= 0 && size.width <= kMostPlace && size.height <= kMostPlace;
}

bool is_near(int at) {
  return at >= -kMostPlace && at <= kMostPlace;
}

// Of the resized picture, which pixels of a side the output shows.
struct ShownSide {
  int least = std::numeric_limits<int>::max(), most = -1;
  bool is_any() const { return most >= 0; }
  bool is_within(int first, int count) const { return least >= first && most < std::int64_t{first} + count; }
};

ShownSide shown_side(int first, int count, int resized, PadMode mode) {
  ShownSide side;
  for (int i = 0; i < count; ++i) {
    const int at = padded_source(first + i, resized, mode);
    if (at < 0) continue;
    side.least = std::min(side.least, at);
    side.most = std::max(side.most, at);
  }
  return side;
}

// REQUIRES: the request's size is one that steps are done to.
std::string_view why_no_canvas(const PictureRequest& request) {
  if (!request.canvas) return request.inner == request.size ? "" : "a picture of another size than its tensor";
  const Canvas& canvas = *request.canvas;
  const Box &inner = canvas.inner, &shown = canvas.shown;
  if (!is_empty_or_more(canvas.resized) || canvas.resized.width == 0 || canvas.resized.height == 0)
    return "a canvas around nothing";
  if (!is_near(shown.left) || !is_near(shown.top) || canvas.mode > PadMode::kSymmetric)
    return "a canvas that reaches too far";
  if (Size{shown.width, shown.height} != request.size) return "a canvas of another size than the tensor";
  if (Size{inner.width, inner.height} != request.inner || !is_near(inner.left) || !is_near(inner.top) ||
      !is_empty_or_more(request.inner))
    return "a picture of another size than its place on the canvas";
  const ShownSide across = shown_side(shown.left, shown.width, canvas.resized.width, canvas.mode);
  const ShownSide down = shown_side(shown.top, shown.height, canvas.resized.height, canvas.mode);
  if (!across.is_any() || !down.is_any()) return "";  // the fill alone
  const bool is_there = across.is_within(inner.left, inner.width) && down.is_within(inner.top, inner.height);
  return is_there ? "" : "a canvas that shows more than the picture has";
}

std::string_view why_not_stored(const PictureRequest& request, const StoreSpec& store) {
  const std::int64_t element = static_cast<std::int64_t>(bytes_of(store.dtype));
  std::int64_t bytes = std::int64_t{request.size.width} * request.size.height * channel_count(store.channels) * element;
  if (store.patches) {
    const Patches& patches = *store.patches;
    const auto is_side = [](int value) { return value >= 1 && value <= std::numeric_limits<std::uint16_t>::max(); };
    if (!is_side(patches.width) || !is_side(patches.height) || !is_side(patches.merge) || !is_side(patches.temporal) ||
        request.size.width % (std::int64_t{patches.width} * patches.merge) != 0 ||
        request.size.height % (std::int64_t{patches.height} * patches.merge) != 0)
      return "a picture of no whole groups of patches";
    bytes *= patches.temporal;
  }
  if (bytes > kMostTensorBytes) return "a tensor of 2 GiB or more";
  return request.output % static_cast<std::uint64_t>(element) == 0 ? ""
                                                                   : "a tensor that is not aligned to its elements";
}

bool has_element(DType dtype, float value) {
  const float rounded = std::nearbyint(value);
  return dtype != DType::kUint8 || (rounded >= 0 && rounded <= 255);
}

bool is_inside(const Box& box, Size size) {
  return box.left >= 0 && box.top >= 0 && box.width >= 0 && box.height >= 0 && box.width <= size.width &&
         box.height <= size.height && box.left <= size.width - box.width && box.top <= size.height - box.height;
}

std::string_view why_not_erased(const PictureRequest& request, const StoreSpec& store) {
  if (store.patches && !request.erased.empty()) return "erased patches";
  for (const Erased& erased : request.erased) {
    if (!is_inside(erased.box, request.size)) return "an erased box outside the tensor";
    for (int c = 0; c < channel_count(store.channels); ++c) {
      if (!has_element(store.dtype, erased.value[static_cast<std::size_t>(c)]))
        return "an erased value that no element has";
    }
  }
  return "";
}

// What one list of operations may need at most.
constexpr std::size_t kMostSteps = std::size_t{kMostOperations} * 8;
constexpr std::size_t kMostWords = std::size_t{kMostOperations} * (4 * kLongestSide + 128);

std::string_view why_not(const PictureRequest& request, const StoreSpec& store, const PicturePlan& plan) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (!is_valid(request.size, {}))
    return "a picture of no pixels, of more than 16,384 a side or 67,108,864 in all, in a batch with padding, steps or "
           "erasing";
  if (!is_valid(request.size, request.operations)) return "operations that are not valid";
  const auto pixels = static_cast<std::uint64_t>(request.size.width) * static_cast<std::uint64_t>(request.size.height);
  if (pixels * request.operations.size() > kMostWork)
    return "more steps on so large a picture than a thread block does";
  if (size_after(request.size, request.operations) != request.size) return "operations that change the picture's size";
  if (plan.steps.size() > kMost - kMostSteps || plan.tables.size() > kMost - kMostWords ||
      request.erased.size() > kMost - plan.boxes.size())
    return "too many operations in a batch";
  if (const std::string_view reason = why_no_canvas(request); !reason.empty()) return reason;
  if (const std::string_view reason = why_not_stored(request, store); !reason.empty()) return reason;
  return why_not_erased(request, store);
}

void put_canvas(const Canvas& canvas, PictureJob& job) {
  job.is_padded = 1;
  job.mode = canvas.mode;
  job.fill = canvas.fill[0] | std::uint32_t{canvas.fill[1]} << 8 | std::uint32_t{canvas.fill[2]} << 16;
  job.resized_width = canvas.resized.width;
  job.resized_height = canvas.resized.height;
  job.inner_left = canvas.inner.left;
  job.inner_top = canvas.inner.top;
  job.shown_left = canvas.shown.left;
  job.shown_top = canvas.shown.top;
}

ErasedBox erased_box(const Erased& erased, const StoreSpec& store) {
  const auto field = [](int value) { return static_cast<std::uint16_t>(value); };
  ErasedBox box{field(erased.box.left), field(erased.box.top), field(erased.box.width), field(erased.box.height), {}};
  for (int c = 0; c < channel_count(store.channels); ++c) {
    const auto colour = static_cast<std::size_t>(colour_of(store.channels, c));
    box.element[c] = element_bits(store.dtype, erased.value[colour]);
  }
  return box;
}

}  // namespace

void PicturePlan::clear() {
  jobs.clear();
  steps.clear();
  boxes.clear();
  tables.clear();
  scratch_bytes = 0;
}

std::string_view append_picture(const PictureRequest& request, const StoreSpec& store, PicturePlan& plan) {
  if (const std::string_view reason = why_not(request, store, plan); !reason.empty()) return reason;
  PictureJob job{};
  job.picture = request.picture;
  job.output = request.output;
  job.scratch = plan.scratch_bytes;
  job.image = request.image;
  job.inner_width = request.inner.width;
  job.inner_height = request.inner.height;
  job.width = static_cast<std::uint16_t>(request.size.width);
  job.height = static_cast<std::uint16_t>(request.size.height);
  if (request.canvas) put_canvas(*request.canvas, job);

  job.first_step = static_cast<std::uint32_t>(plan.steps.size());
  PictureSteps steps(request.size, plan);
  steps.add(request.operations);
  job.steps = static_cast<std::uint32_t>(plan.steps.size()) - job.first_step;
  job.result = steps.result();
  job.buffer_words = static_cast<std::uint32_t>((request.size.width * request.size.height + 63) / 64 * 64);
  plan.scratch_bytes += sizeof(std::uint32_t) * job.buffer_words * steps.buffers();

  job.first_box = static_cast<std::uint32_t>(plan.boxes.size());
  job.boxes = static_cast<std::uint32_t>(request.erased.size());
  for (const Erased& erased : request.erased) plan.boxes.push_back(erased_box(erased, store));
  plan.jobs.push_back(job);
  return "";
}

}  // namespace millrace::kernels::cuda
