// XXH3-64 of xxHash: the checksum in seek indexes, packed images, `.mrp` and `.l3` files. A file of its own, because the
// only library that the kernels use is behind it. Thread-safe: a plain function.
#pragma once

#include <cstdint>
#include <span>

namespace millrace::kernels {

std::uint64_t xxh3_64(std::span<const std::uint8_t> bytes, std::uint64_t seed);

}  // namespace millrace::kernels
