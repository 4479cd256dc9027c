// How a batch's samples lie in its slot, of which there are two kinds: all of one size, each at the place of its number;
// or packed, each of its own size, one after the other. Of a recipe with views the first kind comes once for each view:
//
//   view 0: sample 0, 1, ... | to a multiple of 64 bytes | view 1: sample 0, 1, ... | ...
//
// What is said of a sample's place is then said of its first view. Immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "daemon/memory/arena.h"
#include "daemon/model/geometry.h"
#include "proto/base/bytes.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

class TensorLayout {
 public:
  // check_recipe()'s errors.
  static Result<std::unique_ptr<const TensorLayout>> create(std::shared_ptr<const Recipe> recipe,
                                                            std::uint32_t max_side);
  virtual ~TensorLayout() = default;

  const Recipe& recipe() const { return *recipe_; }

  // Of the tensor of `samples`: one size exactly; packed, whose sizes nobody knows yet, none.
  virtual Bytes least_bytes(std::uint32_t samples) const = 0;

  // Whether a sample has its place as soon as its own size is known; otherwise when that of all is.
  virtual bool places_each_alone() const = 0;
  // The place of sample `index`. kInvalid: not the size that all have. REQUIRES: places_each_alone().
  virtual Result<SlotRange> place(std::uint32_t index, const SampleGeometry& geometry) const = 0;
  // That of any of its views, in a batch of `samples`. REQUIRES: as place(), which had no objection.
  virtual SlotRange place_of_view(std::size_t view, std::uint32_t index, std::uint32_t samples) const = 0;

  // Where a sample begins before which the tensor has `end` bytes.
  virtual Bytes after(Bytes end) const = 0;

  // The image, and its place, that stands for a sample which has none.
  struct Blank {
    Size size;
    SlotRange place;
  };
  virtual Blank blank(std::uint32_t index) const = 0;

  // Whether another sample's pixels are copied to where they have to stand in for a bad one's; otherwise its record
  // points at them.
  virtual bool copies_stand_ins() const = 0;

  // Of a tensor of `samples` and so many bytes. Of several views: one axis.
  std::vector<std::uint64_t> shape(std::uint32_t samples, Bytes tensor) const;
  // Of one view of them.
  std::vector<std::uint64_t> shape_of_view(std::size_t view, std::uint32_t samples) const;

 protected:
  explicit TensorLayout(std::shared_ptr<const Recipe> recipe) : recipe_(std::move(recipe)) {}

 private:
  virtual std::vector<std::uint64_t> image_shape(std::uint32_t samples, Bytes tensor) const = 0;

  const std::shared_ptr<const Recipe> recipe_;  // shared: the session's batches have it, too
};

std::vector<std::uint64_t> dense_strides(std::span<const std::uint64_t> shape, Bytes element);

// The slot bytes without which a batch of so many samples cannot be had.
Bytes least_slot_bytes(const TensorLayout& layout, std::uint32_t samples);

// What a packed batch cannot have in a slot of `slot` bytes, of samples with these bytes of pixels (nullopt: it has
// none and needs no room). The largest samples are too many until the rest fits, of two alike the later one: so a header
// that claims anything costs its own sample first, and as few as possible are lost. It depends on sizes alone, not on
// who was read when.
struct Overflow {
  std::vector<std::uint32_t> samples;  // the largest first
  Bytes needed;                        // by all together
};
Overflow overflow(const TensorLayout& layout, std::span<const std::optional<Bytes>> samples, Bytes slot);

}  // namespace millrace
