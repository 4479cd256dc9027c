// What libjpeg-turbo makes of a JPEG file before the inverse DCT: the reference for entropy decoders.
// Thread-safe: plain functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tests/support/jpeg/jpeg_stream.h"

namespace millrace {

struct JpegPlane {
  int h = 1, v = 1;
  std::size_t across = 0, down = 0;       // blocks, those that only fill up an MCU included
  std::array<std::uint16_t, 64> quant{};  // natural order
  std::vector<JpegBlock> blocks;          // row by row; natural order, DC is the level
};

struct JpegCoefficients {
  int width = 0, height = 0;
  bool is_grey = false, is_ycc = false;
  unsigned restart_interval = 0;
  std::vector<JpegPlane> planes;
  long header_warnings = 0;  // that libjpeg-turbo had before the scan's data
  long warnings = 0;         // and in all
};

// nullopt: libjpeg-turbo calls it an error.
std::optional<JpegCoefficients> read_jpeg_coefficients(std::span<const std::byte> file_untrusted);

// The blocks of one interleaved scan, as JpegStream has them. Differences are modulo 65,536.
std::vector<JpegBlock> in_scan_order(const JpegCoefficients& coefficients);

}  // namespace millrace
