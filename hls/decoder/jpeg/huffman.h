// The entropy decoder (T.81 F.2.2): a symbol a clock, from the bits of two images in turns, because the next symbol's
// place is known two clocks after this one's. Codes are found by comparing sixteen bits with all sixteen limits at once,
// so no table is built for an image: 56 words of codes are loaded.
//
//   code words ──┐
//   pieces ──────┴─▶ HuffmanSlot: bits, level of DC, MCU ──▶ tokens; a verdict behind an image's last one
//
// Whatever the bytes are, as many blocks go on as the picture has: behind damage come blocks of nothing. All of the scan
// is read, down to its end, so that damage below a crop is seen. Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/jpeg/scan.h"

namespace millrace {
namespace hls {

using SetupFifo = Fifo<Burst, 4>;
using TokenFifo = Fifo<Token, 64>;
using VerdictFifo = Fifo<ScanVerdict, 2>;

// One of the codes of a JpegTables, loaded word by word.
class CanonicalCode {
 public:
  void load(std::uint32_t unit, const Burst& word);

  struct Match {
    std::uint32_t length;  // 17: there is no such code
    std::uint8_t symbol;
  };
  // By the next 16 bits.
  Match find(std::uint32_t top) const {
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = limit_ complete
    std::uint32_t length = 1;
    for (int i = 0; i < 16; ++i) {
#pragma HLS UNROLL
      length += top >= limit_[i] ? 1 : 0;
    }
    if (length > 16) return {length, 0};
    return {length, symbols_[(offset_[length] + (top >> (16 - length))) & 255]};
  }

 private:
  std::uint32_t limit_[16] = {};
  std::uint32_t offset_[17] = {};  // modulo 2^32
  std::uint8_t symbols_[256] = {};
};

// What the decoder holds of one image.
class HuffmanSlot {
 public:
  // `most_symbols`: the watchdog's.
  void start(const Job& job, std::uint64_t most_symbols);
  bool step(SetupFifo& setup, PieceFifo& pieces, TokenFifo& tokens, VerdictFifo& verdicts);

 private:
  enum class State : std::uint8_t { kIdle, kLoad, kBlocks, kRestart, kEnd, kPad, kDrain, kTell };

  bool load(SetupFifo& setup);
  bool fill(PieceFifo& pieces);
  bool decode(PieceFifo& pieces, TokenFifo& tokens);
  bool take_symbol(TokenFifo& tokens);
  bool take_level(std::uint32_t next, std::uint32_t used, std::uint8_t size, Token& token);
  bool take_coefficient(std::uint32_t next, std::uint32_t used, std::uint8_t symbol, Token& token);
  bool consume(std::uint32_t count);
  void leave_block();
  bool meet_marker(PieceFifo& pieces);
  bool drop(PieceFifo& pieces);
  bool pad(TokenFifo& tokens);
  void fail(Reason reason);

  Job job_ = {};
  CanonicalCode codes_[kCodes];
  State state_ = State::kIdle;
  std::uint32_t loaded_ = 0;  // words
  std::uint64_t bits_ = 0;    // from the top; zeros behind those that there are
  std::uint32_t valid_ = 0;
  bool at_marker_ = false, ended_ = false;  // a marker was read; the last piece was
  std::uint8_t marker_ = 0;
  int levels_[3] = {};
  int block_ = 0;        // of the MCU
  int coefficient_ = 0;  // that comes next, in zig-zag order
  std::uint32_t mcus_left_ = 0, until_restart_ = 0;
  std::uint8_t next_restart_ = 0;
  ScanVerdict verdict_ = {};
  std::uint64_t symbols_left_ = 0;
};

// More than any image can have: a symbol gives a coefficient at least, or ends a block.
inline std::uint64_t most_symbols(const Job& job) {
  return std::uint64_t{mcus(job)} * static_cast<unsigned>(blocks_in_mcu(job)) * kCoefficients;
}

}  // namespace hls
}  // namespace millrace
