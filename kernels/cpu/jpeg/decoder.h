// JPEG files to pixels, for the files that training sets consist of: 8-bit baseline Huffman coding, one scan, grey or
// YCbCr 4:4:4, 4:2:2, 4:4:0 or 4:2:0, with restart intervals or without. Bit-equal to libjpeg-turbo's islow, fancy
// upsampling and YCC -> RGB, in little more than half the time.
//
// What is anything else, odd or damaged is not decoded here but left to libjpeg-turbo, so that pixels, warnings and
// verdicts never depend on the path. A box that is decoded here is one whose blocks libjpeg-turbo decodes without a
// warning, in a file whose scan has all of its markers up to EOI and no others; what data stands after the box, or in
// restart intervals that it does not meet, is not looked at.
//
// Reads nothing outside the file's bytes. Allocates nothing once it has seen the sizes that occur.
//
//   jpeg::Decoder decoder;                                              // one a thread
//   if (const auto header = jpeg::read_header(file)) decoder.decode(*header, box, pixels, deadline);
#pragma once

#include <memory>
#include <vector>

#include "kernels/base/deadline.h"
#include "kernels/cpu/jpeg/assembler.h"
#include "kernels/cpu/jpeg/entropy/huffman.h"
#include "kernels/cpu/jpeg/processor_table.h"
#include "kernels/cpu/jpeg/restart_decoder.h"
#include "kernels/cpu/jpeg/scan.h"
#include "kernels/cpu/jpeg/seek_decoder.h"
#include "kernels/cpu/jpeg/seek_recorder.h"
#include "kernels/jpeg/header.h"
#include "kernels/packed/encoder.h"
#include "kernels/packed/packed_image.h"

namespace millrace::kernels::jpeg {

enum class Outcome : std::uint8_t {
  kDecoded,
  kNotHere,  // another decoder has to; the pixels mean nothing
  kLate,     // the deadline is over
};

enum class SeekUse : std::uint8_t {
  kNone,      // there was no index
  kUsed,      // it gave all that the box needs
  kExtended,  // it ended above the box's end; decoding went on from there
  kRejected,  // it was wrong, and must be forgotten; decoded from the start
  kMarkers,   // none is wanted: the file's restart markers are one
};

// What is known of a file before it is decoded, and what decoding finds out. The pixels do not depend on it.
struct Seeking {
  IndexBytes index_untrusted;  // as an earlier decoding made it; empty: none
  std::uint64_t owner = 0;     // see SeekIndex
  SeekUse use = SeekUse::kNone;
  std::vector<std::uint8_t> made;  // an index that knows more; empty: nothing new
};

// Tables, buffers of about 1.2 MiB and, for each byte of the file, one byte. Thread-bound(the lane that owns it).
class Decoder {
 public:
  // As processor_table.h says; REQUIRES: the processor has `target`.
  explicit Decoder(Target target = best_target()) : Decoder(target, usual_way(target)) {}
  Decoder(Target target, const DecodingWay& way) : Decoder(target, way.streams, way.segments) {}
  // REQUIRES: kVectors only with Target::kAvx512Bw or more.
  Decoder(Target target, Streams streams, SegmentPath segments);

  // The pixels of `box` into `out`: header.components channels. REQUIRES: as for Assembler::begin();
  // `out` has the box's size.
  // With `seeking`: decodes only what the box needs where there is a good index, and makes one where there is none or
  // too short a one. An index reaches as far as boxes did.
  Outcome decode(const Header& header, const Box& box, const MutableU8View& out, const Deadline& deadline,
                 Seeking* seeking = nullptr);

  // The same, row by row.
  Outcome decode_rows(const Header& header, const Box& box, PixelConsumer& consumer, const Deadline& deadline,
                      Seeking* seeking = nullptr);

  // The planes of a box to a consumer, MCU row by MCU row. It has all of them when the outcome is kDecoded.
  Outcome decode_planes(const Header& header, const PlaneRequest& request, const Deadline& deadline,
                        Seeking* seeking = nullptr);

  // The same three of packed coefficients, which have neither an index nor anything odd: kNotHere says that no Encoder
  // made them, or that there is no memory. Bit-equal to what the packed file gives, but where that is kNotHere.
  // REQUIRES: kPadding readable bytes behind the image's (packed_image.h); otherwise its bytes may be anybody's.
  Outcome decode(const packed::PackedImage& image, const Box& box, const MutableU8View& out, const Deadline& deadline);
  Outcome decode_rows(const packed::PackedImage& image, const Box& box, PixelConsumer& consumer,
                      const Deadline& deadline);
  Outcome decode_planes(const packed::PackedImage& image, const PlaneRequest& request, const Deadline& deadline);

  // All of a file's blocks to `encoder`, whose packed image goes to `out`. Its scan is judged as that of a decoding of
  // the whole picture: kNotHere where that is, and where the encoder refuses. `index`: as for Seeking; empty: none. A
  // wrong one is passed over.
  Outcome pack(const Header& header, IndexBytes index_untrusted, std::uint64_t owner, packed::Encoder& encoder,
               std::vector<std::uint8_t>& out, const Deadline& deadline);

  // The entropy decoding alone: all of the image's blocks go to `consumer`.
  Outcome decode_blocks(const Header& header, std::int64_t blocks, std::int64_t of, BlockConsumer& consumer);
  // With an index, of the MCUs of `window` that it covers.
  Outcome decode_blocks(const Header& header, const SeekIndex& index, const McuWindow& window, SeekConsumer& consumer);

  // Gives back buffers of more than `bytes`.
  void trim(std::size_t bytes);

 private:
  struct Tables {
    HuffmanTable ac[kMostTables], dc[kMostTables];
    std::optional<HuffmanSpec> ac_specs[kMostTables], dc_specs[kMostTables];  // what they were built from
  };

  template <typename Begin>
  Outcome assemble(const Header& header, Begin begin, Seeking* seeking);
  Outcome decode_restarting_blocks(const Header& header, std::int64_t blocks, BlockConsumer& consumer);
  ScanEnd pack_from_start(const Header& header, SeekConsumer& consumer);
  ScanEnd pack_by_index(const Header& header, SeekConsumer& consumer);
  bool build_tables(const Header& header);
  void link_mcu(const Header& header);
  std::span<const McuBlock> mcu() const { return {mcu_, static_cast<std::size_t>(blocks_in_mcu_)}; }
  std::optional<int> unstuff_into_data(FileBytes scan);
  ScanEnd run(ScanData scan, double share, BlockConsumer& consumer);
  Outcome outcome(ScanEnd end) const;
  ScanEnd decode_from_start(const Header& header, Seeking* seeking);
  ScanEnd decode_by_index(const Header& header, Seeking& seeking);
  ScanEnd decode_on(const Header& header, Seeking& seeking);
  ScanEnd decode_by_markers(const Header& header, Seeking* seeking);
  ScanEnd run_recorded(const Header& header, const SeekPlace& start);

  Target target_;
  Streams streams_;
  std::unique_ptr<Tables> tables_ = std::make_unique<Tables>();
  AlignedBuffer data_;
  std::size_t data_size_ = 0, scan_bytes_ = 0;  // unstuffed; stuffed
  McuBlock mcu_[kMostBlocks];
  int blocks_in_mcu_ = 0;
  ScanDecoder scan_;
  SeekDecoder seek_;
  RestartDecoder restarts_;
  SeekIndex index_;
  SeekRecorder recorder_;
  McuBlock exit_[kMostBlocks];  // see Recording
  Assembler assembler_;
};

}  // namespace millrace::kernels::jpeg
