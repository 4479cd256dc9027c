#include "kernels/base/hash.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // XXH3 with the processor's widest vectors
#else
#include <xxhash.h>
#endif

namespace millrace::kernels {

std::uint64_t xxh3_64(std::span<const std::uint8_t> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace millrace::kernels
