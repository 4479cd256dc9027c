#include "hls/model/design.h"

namespace millrace::hls::model {

Design jpeg_design() {
  Design design;
  design.name = "jpeg";
  design.lanes = 14;
  design.resample_pixels = 2;
  return design;
}

Design packed_design() {
  Design design;
  design.name = "packed";
  design.source = Source::kPacked;
  design.turns = 1;
  design.lanes = 16;
  return design;
}

// Vitis_Libraries/codec, release 2021.1 to 2023.1: 16 bits of the file and one symbol a clock; symbols are copied into
// blocks that are zeroed before, one a clock, two MCUs in turns; 8 samples a clock to memory; one image a call. The
// header is read 16 bits at a time and not ahead: once for each table symbol and some 46 times for markers, lengths and
// sizes. Of the file it has 32 bursts of 32 reads under way. Each code fills its places in a table of 1,024, four tables;
// 1,000 words of facts follow the image.
Design vitis_design(int declared_latency) {
  const int read_clocks = declared_latency + 12;  // and the states around it
  Design design;
  design.name = "vitis jpegDecoder";
  design.clock_mhz = 243;
  design.lanes = 1;
  design.turns = 1;
  design.clocks_a_block = 0;
  design.clocks_an_image = 46 * read_clocks + 4 * 1024 + 1000;
  design.clocks_a_table_symbol = read_clocks;
  design.gather_clocks = 6;
  design.lanes_an_idct = 1;
  design.makes_tensors = false;
  design.write_bytes = 8;
  design.stream_bytes = 64 + 32 * 32 * 2;
  design.mcu_buffers = 10;  // a FIFO of 1,024 symbols
  design.word_bytes = 2048;
  design.batch = 1;
  design.calls = 1;
  design.call_us = 45;
  design.counts_pcie = false;
  return design;
}

// Of DLBooster's decoder the numbers of instances are published, and that they balance each other: so a resizer takes
// what two ways make, 2.5 pixels a clock for ImageNet's mean image, and the next power of two is 4. The clock is the
// middle of what the same compiler gave designs of another paper (210 and 241 MHz).
Design dlbooster_design() {
  Design design;
  design.name = "dlbooster";
  design.clock_mhz = 225;
  design.lanes = 4;
  design.turns = 1;
  design.lanes_an_idct = 1;
  design.lanes_a_resampler = 2;
  design.resample_pixels = 4;
  return design;
}

}  // namespace millrace::hls::model
