// The entropy decoder for GPUs, on the host executor: whatever the file is, its verdict is the CPU decoder's, and so
// are the coefficients. The first eight bytes choose the rows, the threads and how they divide the work.
#include <cstdlib>
#include <random>

#include "tests/unit/kernels/cuda/tokenise_rig.h"

namespace {

using namespace millrace;
using kernels::cuda::Status;

constexpr int kMostPixels = 1 << 16;
constexpr std::size_t kChoiceBytes = 8;

void require(bool condition) {
  if (!condition) std::abort();
}

// With segments of any kind, for what sanitizers see.
void decode_with_segments(TokeniseImage image, std::mt19937& random) {
  const auto wild = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  const auto bits = static_cast<std::uint32_t>(image.header.scan.size() * 8 + 16);
  for (unsigned count = 1 + wild(6); count > 0; --count)
    image.segments.push_back({wild(bits), wild(bits), wild(40), wild(20), {}, {}, wild(3)});
  tokenise_one(image, random_run(random));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kChoiceBytes) return 0;
  const auto header = kernels::jpeg::read_header({data + kChoiceBytes, size - kChoiceBytes});
  if (!header || header->scan.empty() || std::int64_t{header->size.width} * header->size.height > kMostPixels) return 0;
  if (header->restart_interval != 0) return 0;
  std::seed_seq seed(data, data + kChoiceBytes);
  std::mt19937 random(seed);
  const TokeniseImage image = some_rows(*header, random);
  const auto expected = decode_wanted(image);
  const auto result = tokenise_one(image, random_run(random));
  require((result && result->status == Status::kDone) == expected.has_value());
  require(!expected || result->blocks == *expected);
  decode_with_segments(image, random);
  return 0;
}
