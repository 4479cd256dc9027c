// The ways in which a lane can decode: instruction set, bit streams that work on an image, and how pieces that a seek
// index knows are decoded. All give the same pixels, but that kScalar is exact where a request is content with
// Fidelity::kFast. Values.
#pragma once

#include <string>

#include "kernels/base/target.h"
#include "kernels/cpu/jpeg/decoder.h"

namespace millrace {

struct CpuVariant {
  kernels::Target target = kernels::best_target();  // kScalar: libjpeg-turbo decodes JPEG without restart markers
  kernels::jpeg::DecodingWay way = kernels::jpeg::usual_way(target);
};

// "avx512 with 2 streams, indexed pieces in lanes"; "scalar".
inline std::string name_of(const CpuVariant& variant) {
  const std::string target(kernels::name_of(variant.target));
  if (variant.target == kernels::Target::kScalar) return target;
  const bool two = variant.way.streams == kernels::jpeg::Streams::kTwo;
  const bool lanes = variant.way.segments == kernels::jpeg::SegmentPath::kVectors;
  return target + (two ? " with 2 streams" : " with 1 stream") + ", indexed pieces " +
         (lanes ? "in lanes" : "in turns");
}

}  // namespace millrace
