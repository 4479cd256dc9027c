// The ways in which a lane can decode: instruction set, bit streams that work on an image, and how pieces that a seek
// index knows are decoded. All give the same pixels, but that kScalar is exact where a request is content with
// Fidelity::kFast. Values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/base/target.h"
#include "kernels/cpu/jpeg/decoder.h"

namespace millrace {

struct CpuVariant {
  kernels::Target target = kernels::best_target();  // kScalar: libjpeg-turbo decodes JPEG without restart markers
  kernels::jpeg::Streams streams = kernels::jpeg::Streams::kTwo;
  std::optional<kernels::jpeg::SegmentPath> segments;  // nullopt: the target's usual one

  friend bool operator==(const CpuVariant&, const CpuVariant&) = default;
};

// "in lanes", "in turns".
inline std::string name_of(kernels::jpeg::SegmentPath path) {
  return path == kernels::jpeg::SegmentPath::kVectors ? "in lanes" : "in turns";
}

// "avx512 with 2 streams"; "avx512 with 2 streams, indexed pieces in lanes"; "scalar".
inline std::string name_of(const CpuVariant& variant) {
  const std::string target(kernels::name_of(variant.target));
  if (variant.target == kernels::Target::kScalar) return target;
  const char* const streams = variant.streams == kernels::jpeg::Streams::kTwo ? " with 2 streams" : " with 1 stream";
  return target + streams + (variant.segments ? ", indexed pieces " + name_of(*variant.segments) : "");
}

struct Timing {
  CpuVariant variant;
  double microseconds = 0;  // of a lane's processor time
};

// The fastest first; empty where there was nothing to choose from. Those of `indexed` differ in `segments` alone, which
// those of `first` leave open.
struct Timings {
  std::vector<Timing> first, indexed;  // first touches; by a seek index
};

}  // namespace millrace
