// What a JPEG becomes without a picture in between (fused_jpeg.h, reduced_jpeg.h), and how that went. Values.
#pragma once

#include <chrono>

#include "kernels/cpu/store.h"
#include "kernels/tensor/resample_spec.h"
#include "kernels/tensor/store_spec.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

// What becomes of the picture: `crop` of it, resampled to `resample.target`, of which the window is stored.
struct FusedOutput {
  kernels::ResampleSpec resample;  // source: the crop's size
  int left = 0, top = 0;           // of the crop
  kernels::Flip flip = kernels::Flip::kNone;
  const kernels::StoreTable& table;
  MutableByteView tensor;
};

struct FusedOutcome {
  Result<void> made;
  std::chrono::nanoseconds transform{};  // of the time, what resampling and storing took; estimated from samples
};

}  // namespace millrace
