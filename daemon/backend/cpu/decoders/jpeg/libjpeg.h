// One decoding by libjpeg-turbo, set up for hostile files: what it reads comes block by block, its errors and warnings
// are counted instead of printed, and the number of scans, the time and the memory are bounded. The steps that are alike
// for all that libjpeg-turbo is asked for; jpeg_decoder.cc has those for pixels, jpeg_coefficients.cc those for
// coefficients.
//
//   Decoding decoding;
//   prepare(decoding, deadline);
//   if (setjmp(decoding.on_failure) == 0) { read_header(decoding, file); limit_memory(decoding, codec); ... }
//   error_of(decoding, size);               // where a step has failed
//   jpeg_destroy_decompress(&decoding.jpeg);
//
// libjpeg reports errors by longjmp, so nothing between setjmp() and these steps may have a destructor.
// Thread-bound(the lane that owns the Decoding).
#pragma once

#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs FILE

#include <jpeglib.h>

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace::libjpeg {

enum class Failure {
  kNone,
  kLibrary,
  kDamaged,
  kDamagedCrop,
  kTruncated,
  kScans,
  kDeadline,
  kMemory,
  kSize,
  kComponents,
  kKind
};

struct Decoding {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf on_failure;
  Failure failure;
  unsigned calls;
  kernels::Deadline deadline;
  const JOCTET* block_end;  // of the last block that libjpeg has
  const JOCTET* file_end;
  std::size_t left_to_skip;  // bytes behind it that libjpeg does not want
  bool finishing;            // all rows are there: the block at hand is the last that is looked at
  int damage;                // the first warning of the entropy decoder; 0: none
  kernels::U8View pixels;
};

[[noreturn]] void fail(Decoding& decoding, Failure failure);

// Before the first step.
void prepare(Decoding& decoding, const kernels::Deadline& deadline);
// Up to the first scan's data.
void read_header(Decoding& decoding, ByteView bytes_untrusted);
// To `codec`; 0: to what any picture of this size takes.
void limit_memory(Decoding& decoding, Bytes codec);
kernels::Size size_of(const jpeg_decompress_struct& jpeg);

inline constexpr std::size_t kBlockBytes = std::size_t{64} << 10;  // Pillow gives libjpeg a file in blocks of so many

// Hands over another `bytes` of the file, or what is left.
void hand_over(Decoding& decoding, std::size_t bytes);
// What reads the rest of the file cannot suspend.
void hand_over_rest(Decoding& decoding);
// Has libjpeg do what it can, block by block, until it is done.
template <typename Step>
void by_blocks(Decoding& decoding, Step step) {
  while (!step()) hand_over(decoding, kBlockBytes);
}

// What has failed, in words.
Error error_of(Decoding& decoding, kernels::Size expected);

}  // namespace millrace::libjpeg
