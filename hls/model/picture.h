// What a real JPEG file asks of a decoder, MCU by MCU: symbols, bits, values. The model is driven by these numbers.
// Values; thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/jpeg/header.h"

namespace millrace::hls::model {

struct McuSymbols {
  std::uint16_t symbols = 0;        // Huffman codes: DC sizes, AC values, runs of 16 zeros, ends of blocks
  std::uint16_t luma_values = 0;    // AC coefficients that are not 0
  std::uint16_t chroma_values = 0;  // the same
  std::uint16_t bits = 0;           // of codes and values, without stuffing
};

struct Picture {
  int width = 0, height = 0;
  int h = 1, v = 1;  // blocks of the first component in an MCU
  int columns = 0, rows = 0, blocks_in_mcu = 0;
  std::vector<McuSymbols> mcus;    // row by row
  std::int64_t file_bytes = 0;     // of the whole file
  std::int64_t scan_bytes = 0;     // of its entropy-coded data, as it is stored
  std::int64_t packed_bytes = 0;   // of its packed form (kernels/packed); 0: it cannot be packed
  std::int64_t packed_head = 0;    // of these, before the first group
  std::int64_t table_symbols = 0;  // in the Huffman tables that its components name

  std::int64_t blocks() const { return static_cast<std::int64_t>(mcus.size()) * blocks_in_mcu; }
  std::int64_t symbols() const;
  std::int64_t bits() const;
};

// nullopt: not a file that our decoders take, or its data is damaged.
std::optional<Picture> read_picture(kernels::jpeg::FileBytes file_untrusted);

}  // namespace millrace::hls::model
