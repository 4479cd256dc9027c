// Augmentation of one RGB picture of 8 bits, bit for bit as torchvision does it to a PIL image, given the parameters.
//
//   Augmenter augmenter(best_target());
//   augmenter.apply(picture, operations, time_limit, result);
//
// The picture is worked on as three planes, in memory that the augmenter keeps: apply() allocates only for a picture
// larger than any before, or more steps. Adjacent steps that change each pixel by itself are taken together, part by
// part of the picture. Thread-bound(its owner).
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <span>

#include "kernels/augment/operation.h"
#include "kernels/base/image_view.h"
#include "kernels/base/target.h"
#include "kernels/base/time_limit.h"

namespace millrace::kernels {

// What each step took, by Step. Steps that are taken together: all of it is the last one's.
using StepTimes = std::array<std::chrono::nanoseconds, kSteps>;

class Augmenter {
 public:
  // REQUIRES: is_available(target).
  explicit Augmenter(Target target);
  ~Augmenter();
  Augmenter(Augmenter&&) noexcept;
  Augmenter& operator=(Augmenter&&) noexcept;

  // The operations in their order, to `out`, which may be `in` itself. False when `limit` was over: `out` then holds
  // nothing of use. Throws std::bad_alloc.
  // `took`: is added to, unless it is null.
  // REQUIRES: is_valid(in.size(), operations); both views have three channels; `out` has size_after() of `in`.
  bool apply(const U8View& in, std::span<const Operation> operations, TimeLimit& limit, const MutableU8View& out,
             StepTimes* took = nullptr);

  // Of the planes, in bytes.
  std::size_t memory() const;

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace millrace::kernels
