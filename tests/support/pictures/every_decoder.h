// Our JPEG decoder in each way that a test can force: instruction sets, streams, and how pieces of a scan are decoded.
// A plain function.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/jpeg/decoder.h"
#include "tests/support/skip.h"

namespace millrace {

// Instruction sets that this processor lacks are skipped loudly.
inline std::vector<std::unique_ptr<kernels::jpeg::Decoder>> every_decoder() {
  using namespace kernels::jpeg;
  std::vector<std::unique_ptr<Decoder>> made;
  for (const auto target : kernels::kAllTargets) {
    if (!kernels::is_available(target)) {
      skip_loudly("instructions: this processor lacks " + std::string(name_of(target)));
      continue;
    }
    for (const Streams streams : {Streams::kOne, Streams::kTwo})
      made.push_back(std::make_unique<Decoder>(target, streams, SegmentPath::kTurns));
    if (target >= kernels::Target::kAvx512Bw)
      made.push_back(std::make_unique<Decoder>(target, Streams::kTwo, SegmentPath::kVectors));
  }
  return made;
}

}  // namespace millrace
