// The tensors that the benchmark checks and times, by name. A checksum file names them, so a recipe that changes gets
// another name. Host only.
#pragma once

#include <span>

#include "kernels/cuda/plan/plan.h"

namespace millrace::kernels::cuda::bench {

struct NamedRecipe {
  const char* name;
  BatchRecipe recipe;
};

inline constexpr Normalise kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

inline constexpr NamedRecipe kRecipes[] = {
    {"train-224-float16-nchw", {.size = {224, 224}, .store = {.dtype = DType::kFloat16, .normalise = kImagenet}}},
    {"bytes-224-nhwc", {.size = {224, 224}, .store = {.layout = Layout::kNhwc}}},
    {"bicubic-256x192-bfloat16-bgr",
     {.size = {256, 192},
      .store = {.dtype = DType::kBfloat16, .channels = ChannelOrder::kBgr, .normalise = kImagenet},
      .filter = Filter::kBicubic}},
    {"lanczos-160-float32-nhwc",
     {.size = {160, 160},
      .store = {.dtype = DType::kFloat32, .layout = Layout::kNhwc, .range = ValueRange::kRaw},
      .filter = Filter::kLanczos}},
    {"box-96x128-grey", {.size = {96, 128}, .store = {.channels = ChannelOrder::kGrey}, .filter = Filter::kBox}},
};
inline constexpr const NamedRecipe& kTrain = kRecipes[0];

}  // namespace millrace::kernels::cuda::bench
