// A recipe's steps of augmentation carried out on a finished RGB picture, and its erasing on a finished tensor. Their
// parameters are drawn here (daemon/draw).
#pragma once

#include <optional>
#include <vector>

#include "daemon/backend/cpu/decoders/pixel_buffer.h"
#include "daemon/model/geometry.h"
#include "daemon/observe/stage_times.h"
#include "kernels/augment/augment.h"
#include "kernels/base/target.h"
#include "kernels/base/time_limit.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

// The recipe by which the picture is made that steps work on: the same pixels as RGB of 8 bits, interleaved.
Recipe before_steps(const Recipe& recipe);

// What a lane keeps from sample to sample. Thread-bound(the lane that owns it).
class StepWorkspace {
 public:
  explicit StepWorkspace(kernels::Target target) : target_(target) {}

  // For a picture of that size, with any contents, good until the next call. nullopt: there is no memory.
  std::optional<kernels::MutableU8View> picture(Size size) { return in(picture_, size); }
  // Likewise for what of it is there before it is padded.
  std::optional<kernels::MutableU8View> inner(Size size) { return in(inner_, size); }

  // The steps, in place. kInvalid: the picture is too small or too large for one of them, or a transform is not computable. kDeadline, kExhausted.
  // REQUIRES: geometry.draws if there are steps; the recipe was checked.
  Result<void> apply(const Recipe& recipe, const SampleGeometry& geometry, kernels::TimeLimit& limit,
                     const kernels::MutableU8View& picture);

  // What its steps took so far; others add what else a lane makes.
  StageTimes& times() { return times_; }

  // Gives back what a giant left behind.
  void trim();

 private:
  static std::optional<kernels::MutableU8View> in(PixelBuffer& buffer, Size size);

  const kernels::Target target_;
  PixelBuffer picture_;
  PixelBuffer inner_;
  std::vector<kernels::Operation> operations_;
  std::optional<kernels::Augmenter> augmenter_;
  StageTimes times_;
};

// Overwrites what is drawn to be erased of the finished tensor, if anything is. kDeadline.
// REQUIRES: geometry.draws; recipe.erasing; `tensor` is one image of the recipe's, aligned to its elements.
Result<void> erase(const Recipe& recipe, const SampleGeometry& geometry, kernels::TimeLimit& limit,
                   MutableByteView tensor);

}  // namespace millrace
