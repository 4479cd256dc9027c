// A decoder for an FPGA as numbers: how many of each stage, how fast each is, how much room between them. Values.
//
//                       of each lane, an image a turn         of each inverse DCT           of each resampler
//   PCIe ▶ call ▶ fetch ▶ stream ▶ entropy ▶ coefficients ▶ inverse DCT ▶ samples ▶ colour ▶ lines ▶ columns ▶ ...
//   ... filtered ▶ rows ▶ words ▶ write ▶ PCIe
#pragma once

#include <cstdint>
#include <string>

#include "hls/wire/words.h"

namespace millrace::hls::model {

struct Design {
  std::string name;
  Source source = Source::kJpegScan;  // or kPacked
  double clock_mhz = 300;
  int units = 1;  // compute units, each with its own calls

  int lanes = 8;  // of a unit
  int turns = 2;  // images that take turns in a lane: its loop has as many clocks, so each gets a symbol every `turns`
  int clocks_a_block = 1;          // of a turn, beside its symbols: the DC predictor, the next table
  int clocks_an_image = 150;       // before a turn's first symbol: descriptor, tables
  int clocks_a_table_symbol = 0;   // the same, for each symbol of the file's Huffman tables
  int gather_clocks = -1;          // an MCU, to zero blocks that symbols are then copied into; negative: no such stage
  int values_a_clock = 8;          // of packed images; a block's shape takes a clock, too
  bool decodes_whole_scan = true;  // also behind the crop, so that damage there is seen

  int lanes_an_idct = 2;
  int idct_coefficients = 8;  // a clock
  bool makes_tensors = true;  // false: samples are written, MCU by MCU
  int colour_pixels = 8;      // a clock, an inverse DCT's
  int lanes_a_resampler = 2;
  int resample_pixels = 4;  // a clock, in columns as well as in rows
  int element_bytes = 1;    // of tensors
  int write_bytes = 64;     // a clock

  int stream_bytes = 512;  // what a turn has fetched ahead
  int mcu_buffers = 2;     // of coefficients, a turn
  int sample_mcus = 2;     // between inverse DCT and colour, a turn
  int line_rows = 2;       // MCU rows of pixels, a turn
  int filtered_rows = 2;   // MCU rows with filtered columns, a turn
  int word_bytes = 8192;   // of outputs, a turn; more than an MCU row's output

  int batch = 256;      // images of a call
  int calls = 2;        // of a unit at once: the next one begins as lanes fall idle
  double call_us = 10;  // from the host's call to the first descriptor
  bool counts_pcie = true;

  int contexts() const { return units * lanes * turns; }
};

// What this project's kernels are to become on a card, before a card is chosen.
Design jpeg_design();
Design packed_design();

// Designs of others, as far as they are published; README.md says what is assumed beside.
// The JPEG decoder of Vitis' codec library. A lone read of memory is taken to last the 125 clocks that the library's
// Huffman decoder declares for the very reads; the decoder itself declares 64, the compiler's default, and waits where
// one lasts longer.
Design vitis_design(int declared_latency = 125);
// DLBooster's decoder on an Arria 10: 4 Huffman ways, 2 resizers.
Design dlbooster_design();

}  // namespace millrace::hls::model
