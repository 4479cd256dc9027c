// The symbols of a scan (T.81 F.2.2), one after the other, from any place between two of them. Who wants them is a
// *sink*:
//
//   bool is_over(reader, place)     before a symbol: decode no more
//   void begin_block(difference)    a DC coefficient's difference
//   void add_token(token)           see batch.h
//   void end_block()
//   void note_bad(place)            what comes next is an impossible code or run, needs more than the data has, or does
//                                   not fit into a token; libjpeg-turbo would warn of it, or nearly
// Behind a bad code or run decoding goes on with the next block, as if the streams had not met yet, which is the usual
// reason. It ends where the data does.
#pragma once

#include <cstdint>

#include "kernels/cuda/batch.h"
#include "kernels/cuda/tokenise/bit_reader.h"
#include "kernels/cuda/tokenise/decode_table.h"

namespace millrace::kernels::cuda {

inline constexpr int kCoefficients = 64;   // of a block
inline constexpr int kMostTokenBits = 11;  // of a value, without its sign

// The tables of an image's scan, in shared memory.
struct ScanTables {
  DecodeTable tables[2 * kMostComponents];
  struct Block {
    std::uint8_t dc, ac, component;
  } of_block[kMostBlocksInMcu];
  std::uint8_t blocks_in_mcu;
};

// Between two symbols.
struct Place {
  int block = 0;        // of the MCU
  int coefficient = 0;  // that comes next; 0: DC
};

// The coefficient's value from its bits, the first ones of `next` (T.81 F.2.2.1).
MILLRACE_HD inline int extend(std::uint32_t next, int size) {
  const int bits = static_cast<int>(next >> 1 >> (31 - size));
  return bits - ((next >> 31) != 0 ? 0 : (1 << size) - 1);
}

MILLRACE_HD inline const DecodeTable& table_at(const ScanTables& scan, const Place& place) {
  const ScanTables::Block& block = scan.of_block[place.block];
  return scan.tables[place.coefficient == 0 ? block.dc : block.ac];
}

template <class Sink>
MILLRACE_HD inline void leave_block(const ScanTables& scan, Place& place, Sink& sink) {
  place.block = place.block + 1 == scan.blocks_in_mcu ? 0 : place.block + 1;
  place.coefficient = 0;
  sink.end_block();
}

// What an AC code says. True: the block is over.
template <class Sink>
MILLRACE_HD inline bool take_coefficient(Code code, int value, Place& place, Sink& sink) {
  if (ends_block(code)) return true;
  const int at = place.coefficient + zero_run(code);
  if (code == kNoCode || at >= kCoefficients || value_bits(code) > kMostTokenBits) {
    sink.note_bad(place);
    return true;
  }
  sink.add_token(static_cast<Token>(zero_run(code) << 12 | (value & 0xfff)));
  place.coefficient = at + 1;
  return place.coefficient == kCoefficients;
}

// Until the sink has enough: true. False: until the data's end, which was noted as bad.
template <class Sink>
MILLRACE_HD bool decode_symbols(const ScanTables& scan, BitReader& reader, Place& place, Sink& sink) {
  const DecodeTable* table = &table_at(scan, place);
  for (;;) {
    reader.refill();
    if (sink.is_over(reader, place)) return true;
    const std::uint32_t next = reader.peek();
    const Code code = find_code(*table, next >> 16);
    const int length = code == kNoCode ? kLongestCode : code_bits(code), size = value_bits(code);
    if (!reader.take(length + size)) {
      sink.note_bad(place);
      return false;
    }
    const int value = extend(next << length, size);
    if (place.coefficient == 0) {
      if (code == kNoCode) sink.note_bad(place);
      sink.begin_block(value);
      place.coefficient = 1;
    } else if (take_coefficient(code, value, place, sink)) {
      leave_block(scan, place, sink);
    } else {
      continue;
    }
    table = &table_at(scan, place);
  }
}

}  // namespace millrace::kernels::cuda
