// What a recipe's steps of augmentation do to one sample: their parameters drawn. A pure function of the steps, the
// image's size and (seed, epoch, sample id): every backend, every order of work and every restart has the same.
// Thread-safe.
//
//   std::vector<kernels::Operation> operations;
//   draw_steps(recipe.steps, {224, 224}, key, operations);
//   augmenter.apply(picture, operations, limit, result);
//
// Step number n of the recipe, counted as step.proto says, draws from a stream of its own
// (RandomStream::use_of_step(n)): first whether it is done, then what steps of its kind draw, in the order of
// draw_steps.cc. So another probability or range of one step leaves the others as they were.
#pragma once

#include <span>
#include <vector>

#include "daemon/model/random_key.h"
#include "kernels/augment/operation.h"
#include "proto/base/steps.h"

namespace millrace {

// Appends the operations, in their order. They are valid where kernels::is_valid() says so: an image may be too small
// for a blur, or too large.
// REQUIRES: daemon/plan's check_steps() was content.
void draw_steps(std::span<const Step> steps, kernels::Size size, RandomKey key,
                std::vector<kernels::Operation>& operations);

}  // namespace millrace
