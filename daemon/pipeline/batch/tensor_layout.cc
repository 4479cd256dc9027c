#include "daemon/pipeline/batch/tensor_layout.h"

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/plan/recipe_check.h"
#include "proto/shm/segment_layout.h"

namespace millrace {
namespace {

static_assert(kPackedAlignment == shm::kImageAlignment);

using Axes = std::vector<std::uint64_t>;

Axes image_axes(const Recipe& recipe, std::uint32_t samples, Size size) {
  const std::uint64_t channels = channel_count(recipe.channels);
  if (recipe.layout == Layout::kNhwc) return {samples, size.height, size.width, channels};
  return {samples, channels, size.height, size.width};
}

class OneSize final : public TensorLayout {
 public:
  // REQUIRES: each of its views has a fixed size.
  explicit OneSize(std::shared_ptr<const Recipe> recipe) : TensorLayout(std::move(recipe)) {
    for (const Recipe& view : views_of(this->recipe())) {
      const Size size = *fixed_size(view);
      images_.push_back({size, image_bytes(view, size)});
    }
  }

  Bytes least_bytes(std::uint32_t samples) const override { return one_size_tensor_bytes(recipe(), samples); }
  bool places_each_alone() const override { return true; }

  Result<SlotRange> place(std::uint32_t index, const SampleGeometry& geometry) const override {
    for (std::size_t i = 0; i < images_.size(); ++i) {
      const Size output = views_of(geometry)[i].output(), size = images_[i].size;
      if (output == size) continue;
      return Error{Code::kInvalid, "comes out as " + std::to_string(output.width) + "x" +
                                       std::to_string(output.height) + " in a tensor of " + std::to_string(size.width) +
                                       "x" + std::to_string(size.height) + "; resize it, or ask for packed output"};
    }
    return at(index);
  }

  SlotRange place_of_view(std::size_t view, std::uint32_t index, std::uint32_t samples) const override {
    Bytes begin{0};
    for (std::size_t i = 0; i < view; ++i) begin += align_up(images_[i].bytes * samples, kPackedAlignment);
    return {(begin + images_[view].bytes * index).count, images_[view].bytes};
  }

  Bytes after(Bytes end) const override { return end; }
  Blank blank(std::uint32_t index) const override { return {images_.front().size, at(index)}; }
  bool copies_stand_ins() const override { return true; }

 private:
  struct Image {
    Size size;
    Bytes bytes;
  };

  SlotRange at(std::uint32_t index) const { return {(images_.front().bytes * index).count, images_.front().bytes}; }

  Axes image_shape(std::uint32_t samples, Bytes) const override {
    return image_axes(recipe(), samples, images_.front().size);
  }

  std::vector<Image> images_;  // of each view
};

class Packed final : public TensorLayout {
 public:
  explicit Packed(std::shared_ptr<const Recipe> recipe) : TensorLayout(std::move(recipe)) {}

  Bytes least_bytes(std::uint32_t) const override { return {}; }
  bool places_each_alone() const override { return false; }
  Result<SlotRange> place(std::uint32_t, const SampleGeometry&) const override {
    return Error{Code::kInternal, "a packed sample has no place of its own"};
  }
  SlotRange place_of_view(std::size_t, std::uint32_t, std::uint32_t) const override { return {}; }
  Bytes after(Bytes end) const override { return align_up(end, packed_alignment(recipe())); }
  Blank blank(std::uint32_t) const override { return {}; }
  bool copies_stand_ins() const override { return false; }  // their sizes differ

 private:
  // A packed tensor is one axis. An image begins at a multiple of 64 bytes and no element has more, so that the gaps
  // between images are whole elements, too.
  static_assert(kPackedAlignment % dtype_bytes(DType::kFloat32).count == 0);
  Axes image_shape(std::uint32_t, Bytes tensor) const override {
    return {tensor.count / dtype_bytes(recipe().dtype).count};
  }
};

}  // namespace

Result<std::unique_ptr<const TensorLayout>> TensorLayout::create(std::shared_ptr<const Recipe> recipe,
                                                                 std::uint32_t max_side) {
  MILLRACE_TRY_VOID(check_recipe(*recipe, max_side));
  std::unique_ptr<const TensorLayout> layout;
  if (recipe->packing == Packing::kPacked) {
    layout = std::make_unique<Packed>(std::move(recipe));
  } else {
    layout = std::make_unique<OneSize>(std::move(recipe));  // whose sizes check_recipe() has looked for
  }
  return layout;
}

std::vector<std::uint64_t> TensorLayout::shape(std::uint32_t samples, Bytes tensor) const {
  if (!recipe_->views.empty()) return {tensor.count / dtype_bytes(recipe_->dtype).count};
  if (!recipe_->patches) return image_shape(samples, tensor);
  const Patches& patches = *recipe_->patches;
  const std::uint64_t patch = image_bytes(*recipe_, patches.size).count;
  return {tensor.count / patch, channel_count(recipe_->channels), patches.temporal, patches.size.height,
          patches.size.width};
}

std::vector<std::uint64_t> TensorLayout::shape_of_view(std::size_t view, std::uint32_t samples) const {
  return image_axes(*recipe_, samples, *fixed_size(views_of(*recipe_)[view]));
}

std::vector<std::uint64_t> dense_strides(std::span<const std::uint64_t> shape, Bytes element) {
  Axes strides(shape.size(), element.count);
  for (std::size_t axis = shape.size() - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * shape[axis + 1];
  return strides;
}

Bytes least_slot_bytes(const TensorLayout& layout, std::uint32_t samples) {
  return shm::slot_bytes(layout.least_bytes(samples), samples);
}

Overflow overflow(const TensorLayout& layout, std::span<const std::optional<Bytes>> samples, Bytes slot) {
  const auto count = static_cast<std::uint32_t>(samples.size());
  const auto room_of = [&](std::uint32_t index) { return layout.after(*samples[index]); };
  std::vector<std::uint32_t> sized;
  Bytes tensor{0};
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!samples[i]) continue;
    sized.push_back(i);
    tensor += room_of(i);
  }
  Overflow found{.samples = {}, .needed = shm::slot_bytes(tensor, count)};
  std::sort(sized.begin(), sized.end(), [&](std::uint32_t a, std::uint32_t b) {
    return *samples[a] != *samples[b] ? *samples[a] < *samples[b] : a < b;
  });
  while (!sized.empty() && shm::slot_bytes(tensor, count) > slot) {
    tensor -= room_of(sized.back());
    found.samples.push_back(sized.back());
    sized.pop_back();
  }
  return found;
}

}  // namespace millrace
