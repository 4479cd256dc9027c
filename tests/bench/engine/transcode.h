// JPEG files with the same coefficients and other restarts. A plain function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace millrace::bench {

// With a restart interval of one row of MCUs, and Huffman tables made for it, by libjpeg-turbo. nullopt: it cannot.
std::optional<std::vector<std::uint8_t>> with_restarts(std::span<const std::byte> jpeg);

}  // namespace millrace::bench
