// JPEG files to pixels, for the files that training sets consist of: 8-bit baseline Huffman coding, one scan, grey or
// YCbCr 4:4:4, 4:2:2, 4:4:0 or 4:2:0, no restart intervals. Bit-equal to libjpeg-turbo's islow, fancy upsampling and
// YCC -> RGB, in little more than half the time.
//
// What is anything else, odd or damaged is not decoded here but left to libjpeg-turbo, so that pixels, warnings and
// verdicts never depend on the path. A box that is decoded here is one that libjpeg-turbo decodes without a warning up
// to the box's end; what comes behind is looked at only for a marker that ends the data.
//
// Reads nothing outside the file's bytes. Allocates nothing once it has seen the sizes that occur.
//
//   jpeg::Decoder decoder;                                              // one a thread
//   if (const auto header = jpeg::read_header(file)) decoder.decode(*header, box, pixels, deadline);
#pragma once

#include <chrono>
#include <memory>

#include "kernels/cpu/jpeg/assembler.h"
#include "kernels/cpu/jpeg/header.h"
#include "kernels/cpu/jpeg/huffman.h"
#include "kernels/cpu/jpeg/scan.h"

namespace millrace::kernels::jpeg {

enum class Outcome : std::uint8_t {
  kDecoded,
  kNotHere,  // another decoder has to; the pixels mean nothing
  kLate,     // the deadline passed
};

// How many bit streams work on an image.
enum class Streams : std::uint8_t { kOne, kTwo };

// Tables, buffers of about 1.2 MiB and, for each byte of the file, one byte. Thread-bound(the lane that owns it).
class Decoder {
 public:
  explicit Decoder(Target target = best_target(), Streams streams = Streams::kTwo);

  // The pixels of `box` into `out`: header.components channels. REQUIRES: as for Assembler::begin().
  Outcome decode(const Header& header, const Box& box, const MutableU8View& out,
                 std::chrono::steady_clock::time_point deadline);

  // The planes of a box to a consumer, MCU row by MCU row. It has all of them when the outcome is kDecoded.
  Outcome decode_planes(const Header& header, const PlaneRequest& request,
                        std::chrono::steady_clock::time_point deadline);

  // The entropy decoding alone: all of the image's blocks go to `consumer`.
  Outcome decode_blocks(const Header& header, std::int64_t blocks, std::int64_t of, BlockConsumer& consumer);

  // Gives back buffers of more than `bytes`.
  void trim(std::size_t bytes);

 private:
  struct Tables {
    HuffmanTable ac[kMostTables], dc[kMostTables];
    std::optional<HuffmanSpec> ac_specs[kMostTables], dc_specs[kMostTables];  // what they were built from
  };

  Outcome assemble(const Header& header);
  bool build_tables(const Header& header);
  void link_mcu(const Header& header);
  bool unstuff_scan(const Header& header);

  Target target_;
  Streams streams_;
  std::unique_ptr<Tables> tables_ = std::make_unique<Tables>();
  AlignedBuffer data_;
  std::size_t data_size_ = 0;
  McuBlock mcu_[kMostBlocks];
  int blocks_in_mcu_ = 0;
  ScanDecoder scan_;
  Assembler assembler_;
};

}  // namespace millrace::kernels::jpeg
