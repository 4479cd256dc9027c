// Keeps every block that a scan's decoder hands over. Thread-bound(the decoder's).
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/jpeg/scan.h"
#include "tests/support/jpeg/jpeg_stream.h"

namespace millrace {

class BlockCollector final : public kernels::jpeg::BlockConsumer {
 public:
  bool take(std::int16_t* blocks, std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i, blocks += kernels::jpeg::kCoefficients)
      std::copy_n(blocks, kernels::jpeg::kCoefficients, all.emplace_back().begin());
    std::memset(blocks - count * kernels::jpeg::kCoefficients, 0,
                static_cast<std::size_t>(count) * kernels::jpeg::kBlockBytes);
    return true;
  }
  std::vector<JpegBlock> all;
};

}  // namespace millrace
