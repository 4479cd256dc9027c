// The hash in a seek index, of what it says and of what it was made from. A file of its own, because the only library
// that the kernels use is behind it: XXH3-64 of xxHash. Thread-safe: a plain function.
#pragma once

#include <cstdint>
#include <span>

namespace millrace::kernels::jpeg {

std::uint64_t index_hash(std::span<const std::uint8_t> bytes, std::uint64_t seed);

}  // namespace millrace::kernels::jpeg
