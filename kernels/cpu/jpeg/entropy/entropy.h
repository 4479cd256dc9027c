// Entropy decoding of one or two bit streams in turns. Internal to kernels/cpu/jpeg.
//
// A stream decodes blocks of 64 coefficients, in zig-zag order, into zeroed memory: 128 bytes a block, one after the
// other. DC coefficients are left as differences. One symbol's decoding is a chain of dependent instructions that
// leaves most of a core idle; a second stream in the same loop uses it.
//
// Algorithm and table layout: ours; T.81 F.2.2 says what the bits mean.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "kernels/base/target.h"
#include "kernels/cpu/jpeg/entropy/huffman.h"

namespace millrace::kernels::jpeg {

inline constexpr int kBlockBytes = 2 * kCoefficients;
inline constexpr int kChunkBits = 120;  // that a chunk consumes at most
// Zeroed bytes that must follow the data: what a shortest run beyond its end loads.
inline constexpr std::size_t kDataPadding = 1024;

// The table after this one, and what follows on it: after a DC coefficient, or after a block.
struct TableSwitch {
  TableAddress table;
  const TableSwitch* next;
};

// One block of an MCU: its tables, and the next one (circular).
struct McuBlock {
  const HuffmanTable* dc;
  const HuffmanTable* ac;
  const McuBlock* next;
  TableSwitch behind_dc, behind_block;
};

// Fills `next` and the switches of a circle.
inline void link(std::span<McuBlock> mcu) {
  for (std::size_t i = 0; i < mcu.size(); ++i) {
    McuBlock& next = mcu[(i + 1) % mcu.size()];
    mcu[i].next = &next;
    mcu[i].behind_dc = {address_of(*mcu[i].ac), &mcu[i].behind_block};
    mcu[i].behind_block = {address_of(*next.dc), &next.behind_dc};
  }
}

// What a gate notes: where a block begins, in memory (the byte before it, as if no block had been moved) and in the
// data (as bit_of() reads it).
struct Note {
  std::uintptr_t last = 0;
  std::uint64_t place = 0;
};

// The bit that `place` stands for, counted from `data`.
inline std::int64_t bit_of(std::uint64_t place, const std::uint8_t* data) {
  return static_cast<std::int64_t>(place - 8 * reinterpret_cast<std::uintptr_t>(data));
}

// The state between chunks, anywhere between two symbols.
struct Cursor {
  std::uint64_t bits = 0;              // the next ones, from the top
  std::uint64_t valid = 0;             // how many of them are of the bytes before `next`; there may be more
  const std::uint8_t* next = nullptr;  // byte to load
  TableAddress table = 0;
  const TableSwitch* then = nullptr;
  std::uintptr_t last = 0;   // address of the last byte written: 127 modulo 128 before a block
  std::uintptr_t bad = 0;    // the same when the first impossible code or run was seen; 0: none yet
  std::uintptr_t moved = 0;  // bytes by which blocks, and `last` with them, were moved towards the beginning
  Note* notes = nullptr;     // where a gate puts the next note, for which there must be room; nullptr: gates stop
};

// Before the block `first` at bit `bit` of `data`; `out` is where it goes. Looks at 8 bytes of data. REQUIRES: `out` is
// aligned to kBlockBytes.
inline Cursor cursor_at(const std::uint8_t* data, std::int64_t bit, const McuBlock& first, const char* out) {
  std::uint64_t word;
  std::memcpy(&word, data + (bit >> 3), sizeof word);
  return {.bits = __builtin_bswap64(word) << (bit & 7),
          .valid = 56 - static_cast<std::uint64_t>(bit & 7),
          .next = data + (bit >> 3) + 7,
          .table = address_of(*first.dc),
          .then = &first.behind_dc,
          .last = reinterpret_cast<std::uintptr_t>(out) - 1};
}

// The bit that comes next, counted from `data`.
inline std::int64_t bit_position(const Cursor& cursor, const std::uint8_t* data) {
  return (cursor.next - data) * 8 - static_cast<std::int64_t>(cursor.valid);
}

struct EntropyKernels {
  // `chunks` times up to three table look-ups, or until a stream is at a gate that stops it. Two streams take turns.
  void (*run_one)(Cursor& cursor, int chunks);
  void (*run_two)(Cursor& first, Cursor& second, int chunks);
  // One symbol, whatever it is, or a gate. True: a gate that stops.
  bool (*take_one)(Cursor& cursor);
};

const EntropyKernels& entropy_kernels(Target target);
const EntropyKernels& scalar_entropy_kernels();
#if defined(__x86_64__)
const EntropyKernels& bmi2_entropy_kernels();
#endif

}  // namespace millrace::kernels::jpeg
