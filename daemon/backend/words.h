// What every backend has to say or to translate, whatever its device: the model's values in the kernels' words, whether
// a task is one that may be carried out, and the errors that all of them have. Pure functions, thread-safe.
//
//   MILLRACE_TRY_VOID(check_task(task, recipe, limits));                      // before anything is read or written
//   const kernels::ResampleSpec resample = resample_spec(task.geometry, recipe, 3);
//   const kernels::StoreSpec store = store_spec(recipe);
#pragma once

#include "daemon/backend/backend.h"
#include "daemon/model/geometry.h"
#include "daemon/model/limits.h"
#include "kernels/base/image_view.h"
#include "kernels/tensor/resample_spec.h"
#include "kernels/tensor/store_spec.h"
#include "proto/base/error.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

// REQUIRES of both: a size or box that check_task() was content with.
kernels::Size in_kernels(Size size);
kernels::Box in_kernels(const Box& box);

// How the recipe stores an image.
kernels::StoreSpec store_spec(const Recipe& recipe);

// How the crop becomes the window. `channels`: of the decoded picture.
kernels::ResampleSpec resample_spec(const SampleGeometry& geometry, const Recipe& recipe, int channels);

kernels::Flip flip_of(const SampleGeometry& geometry);

// kInvalid: the image is over the limits. kInternal: crop, window, patches or the size of the destination contradict each other, which
// is our planner's fault and no reason to end the process. What it lets pass cannot lead outside the destination.
Result<void> check_task(const SampleTask& task, const Recipe& recipe, const SampleLimits& limits);

// Of backends that write with a processor. kUnsupported: the destination has no host address. kInternal: it is not
// aligned to its elements. REQUIRES: check_task() was content.
Result<void> check_on_host(const SampleTask& task, const Recipe& recipe);

// Of a sample that was not made when its job was stopped or the backend shut down.
Error cancelled_error();

}  // namespace millrace
