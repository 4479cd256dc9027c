// The ways in which a lane can decode: instruction set, and bit streams that work on an image. All give the same
// pixels, but that kScalar is exact where a request is content with Fidelity::kFast. Values.
#pragma once

#include <string>
#include <vector>

#include "kernels/cpu/jpeg/decoder.h"
#include "kernels/cpu/target.h"

namespace millrace {

struct CpuVariant {
  kernels::Target target = kernels::best_target();  // kScalar: libjpeg-turbo decodes JPEG
  kernels::jpeg::Streams streams = kernels::jpeg::Streams::kTwo;

  friend bool operator==(const CpuVariant&, const CpuVariant&) = default;
};

// "avx512 with 2 streams"; "scalar".
inline std::string name_of(const CpuVariant& variant) {
  const std::string target(kernels::name_of(variant.target));
  if (variant.target == kernels::Target::kScalar) return target;
  return target + (variant.streams == kernels::jpeg::Streams::kTwo ? " with 2 streams" : " with 1 stream");
}

struct Timing {
  CpuVariant variant;
  double microseconds = 0;  // of a lane's processor time
};

}  // namespace millrace
