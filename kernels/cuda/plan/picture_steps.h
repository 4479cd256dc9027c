// Operations to steps, and the buffers that they work in. Internal to picture_plan.cc and its tests.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/augment/kernels.h"
#include "kernels/augment/operation.h"
#include "kernels/cuda/plan/picture_plan.h"

namespace millrace::kernels::cuda {

// Which buffers are in use, and how often: the picture, and those that a sum keeps.
class PictureBuffers {
 public:
  // The lowest that is free.
  std::uint8_t take() {
    std::size_t at = 0;
    while (uses_[at] != 0) ++at;
    uses_[at] = 1;
    count_ = std::max(count_, at + 1);
    return static_cast<std::uint8_t>(at);
  }
  void keep(std::uint8_t buffer) { ++uses_[buffer]; }
  void release(std::uint8_t buffer) { --uses_[buffer]; }
  bool is_kept(std::uint8_t buffer) const { return uses_[buffer] > 1; }
  std::size_t count() const { return count_; }  // that were ever in use

 private:
  // A sum keeps up to kMostMixed + 1. A step has the picture, its result and three of floats.
  std::array<std::uint8_t, kMostMixed + 1 + 5> uses_{};
  std::size_t count_ = 0;
};

// One picture's steps, appended to the plan. REQUIRES: is_valid() of the size and all operations.
class PictureSteps {
 public:
  PictureSteps(Size size, PicturePlan& plan)
      : size_(size), plan_(plan), first_(plan.steps.size()), picture_(buffers_.take()) {}

  void add(std::span<const Operation> operations) {
    for (const Operation& operation : operations) add(operation);
  }

  std::uint8_t result() const { return picture_; }
  std::size_t buffers() const { return plan_.steps.size() == first_ ? 0 : buffers_.count(); }

 private:
  void add(const Operation& operation);
  void add_values(AugmentKind kind, float factor, std::int32_t value);
  void add_move(int first, int column, int row, Size result);
  void add_turns(int turns);
  void add_transform(const Operation& operation);
  void add_scale(const Operation& operation);
  void add_fixed(const Operation& operation);
  void add_summed(const Operation& operation);
  void add_sample(const Operation& operation);
  void add_gaussian_blur(const Operation& operation);
  void add_pillow_blur(float radius);
  void add_mix(float factor);

  // A step from the picture to itself where it may be changed in place, and to another buffer.
  AugmentStep& push_in_place(AugmentKind kind);
  AugmentStep& push(AugmentKind kind);
  AugmentStep& append(AugmentKind kind, std::uint8_t to);

  std::uint32_t next_word() const { return static_cast<std::uint32_t>(plan_.tables.size()); }
  void put(float value);
  void put(double value);

  Size size_;
  PicturePlan& plan_;
  const std::size_t first_;
  PictureBuffers buffers_;
  std::uint8_t picture_;
  // Of the sum on its way.
  struct Kept {
    std::uint8_t buffer;
    float weight;
  };
  std::vector<Kept> kept_;
};

}  // namespace millrace::kernels::cuda
