// Baseline JPEG files written coefficient by coefficient, without a library: what an encoder of pixels never makes, and
// what a decoder must read all the same (T.81 annexes B, C and F). Thread-safe: plain functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/support/jpeg/jpeg_code.h"

namespace millrace {

using JpegBlock = std::array<std::int16_t, 64>;  // zig-zag order; the DC coefficient is the difference that is coded

struct JpegQuant {
  std::array<std::uint16_t, 64> values{};  // zig-zag order
  bool wide = false;                       // 16 bits a value in the file; without it they are below 256
};

struct JpegComponent {
  std::uint8_t id = 1;
  int h = 1, v = 1;  // 1..4
  int quant = 0, dc = 0, ac = 0;
};

// How blocks become symbols where the standard leaves a choice, and what stands between the segments.
struct JpegStyle {
  std::uint32_t seed = 0;
  bool needless_runs = false;  // runs of 16 zeros before the end of a block
  bool odd_ends = false;       // ends of blocks by any symbol run/0 with a run below 15, as libjpeg reads them
  bool jfif = true;
  int adobe_transform = -1;   // -1: no such segment
  int fill_bytes = 0;         // 0xFF before each marker but the first
  bool extended = false;      // SOF1
  bool joined_tables = true;  // all tables of a kind in one segment
  std::uint8_t padding = 1;   // the bit that fills the last byte
};

struct JpegStream {
  int width = 0, height = 0;
  std::vector<JpegComponent> components;
  std::array<std::optional<JpegQuant>, 4> quant;
  std::array<std::optional<JpegCode>, 4> dc, ac;
  int restart_interval = 0;       // MCUs; 0: none
  std::vector<JpegBlock> blocks;  // in the scan's order; one component: block rows of the image
  JpegStyle style;
};

struct JpegFile {
  std::vector<std::byte> bytes;
  std::size_t scan = 0;  // where the scan's data begins
  std::size_t end = 0;   // where it ends: EOI
  int padding_bits = 0;  // of the last byte
};

// REQUIRES: every symbol that occurs has a code; as many blocks as MCUs need.
JpegFile write_jpeg(const JpegStream& stream);

// Blocks of an MCU, and MCUs of the image.
int blocks_in_mcu(const JpegStream& stream);
std::size_t mcu_count(const JpegStream& stream);

// How often each symbol occurs, by table.
struct JpegHistogram {
  std::array<JpegFrequencies, 4> dc{}, ac{};
};
JpegHistogram count_symbols(const JpegStream& stream);

}  // namespace millrace
