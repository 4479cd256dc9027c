// A scan's bytes on their way to the entropy decoder: bursts from memory, then pieces without stuffing.
//
//   encoded ──bursts──▶ SourceLoader ──▶ ScanUnstuffer ──pieces──▶ entropy decoder
//                       a burst a clock  four bytes a clock
//
// The last piece of a scan is a marker that is no restart, or the end of the bytes; what follows it is thrown away.
// Thread-bound(the kernel's caller).
#pragma once

#include "hls/base/fifo.h"
#include "hls/base/memory.h"
#include "hls/decoder/words.h"

namespace millrace {
namespace hls {

using BurstFifo = Fifo<Burst, 16>;  // hides the memory's latency
using PieceFifo = Fifo<Piece, 16>;

// Bytes of the sources, word by word.
class SourceLoader {
 public:
  // REQUIRES: bytes > 0.
  void start(std::uint32_t begin, std::uint32_t bytes) {
    next_ = begin / kBurstBytes;
    end_ = (begin + (bytes - 1)) / kBurstBytes + 1;
  }
  void start(const Job& job) { start(job.image.source, job.image.source_bytes); }
  bool has_ended() const { return next_ == end_; }
  void stop() { next_ = end_ = 0; }
  // True: something went on; the same for all stages.
  bool step(const ReadPort& encoded, BurstFifo& bursts);

 private:
  std::uint32_t next_ = 0, end_ = 0;
};

class ScanUnstuffer {
 public:
  void start(const Job& job) {
    at_ = job.image.source % kBurstBytes;
    left_ = job.image.source_bytes;
    held_ = 0;
    held_bytes_ = 0;
    has_word_ = after_ff_ = meets_marker_ = ends_ = false;
  }
  bool step(BurstFifo& bursts, PieceFifo& pieces);
  // The last piece has gone.
  bool has_ended() const { return ends_; }

 private:
  bool next_word(BurstFifo& bursts);
  void take_byte();
  bool take_four();
  bool flush(PieceFifo& pieces);

  Burst word_ = {};
  std::uint32_t at_ = 0;    // in the word
  std::uint32_t left_ = 0;  // bytes of the source
  std::uint64_t held_ = 0;  // data that is no piece yet, from the top
  std::uint32_t held_bytes_ = 0;
  bool has_word_ = false, after_ff_ = false;
  bool meets_marker_ = false, ends_ = true;
  std::uint8_t marker_ = 0;
};

}  // namespace hls
}  // namespace millrace
