// What the targets share whose input is eight bytes that choose a box, and a JPEG file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/support/pictures/every_decoder.h"

namespace millrace {

inline constexpr std::size_t kBoxBytes = 8;

inline void require(bool condition) {
  if (!condition) std::abort();
}

inline std::vector<std::unique_ptr<kernels::jpeg::Decoder>>& decoders() {
  static auto all = every_decoder();
  return all;
}

// nullopt: not for our decoder, or too large to be worth the time.
inline std::optional<kernels::jpeg::Header> header_of(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kMostPixels = 1 << 18;
  if (size < kBoxBytes) return std::nullopt;
  const auto header = kernels::jpeg::read_header({data + kBoxBytes, size - kBoxBytes});
  if (!header || std::int64_t{header->size.width} * header->size.height > kMostPixels) return std::nullopt;
  return header;
}

}  // namespace millrace
