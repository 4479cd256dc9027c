// Entropy decoding of one or two bit streams in turns. Internal to kernels/cpu/jpeg.
//
// A stream decodes blocks of 64 coefficients, in zig-zag order, into zeroed memory: 128 bytes a block, one behind the
// other. DC coefficients are left as differences. One symbol's decoding is a chain of dependent instructions that
// leaves most of a core idle; a second stream in the same loop uses it.
//
// Algorithm and table layout: ours; T.81 F.2.2 says what the bits mean.
#pragma once

#include <cstdint>

#include "kernels/cpu/jpeg/huffman.h"
#include "kernels/cpu/target.h"

namespace millrace::kernels::jpeg {

inline constexpr int kBlockBytes = 2 * kCoefficients;
inline constexpr int kChunkBits = 120;  // that a chunk consumes at most
// Zeroed bytes that must follow the data: what a shortest run beyond its end loads.
inline constexpr std::size_t kDataPadding = 1024;

// One block of an MCU: its tables, and the next one (circular).
struct McuBlock {
  const AcTable* ac;
  const DcTable* dc;
  const McuBlock* next;
};

// The state between chunks, always in the middle of a block of which at least the DC coefficient is there.
struct Cursor {
  std::uint64_t bits = 0;              // the next ones, from the top
  std::uint64_t used = 0;              // modulo 64: bits already shifted out, of the whole bytes loaded, at most 63
  const std::uint8_t* next = nullptr;  // byte to load
  const AcTable* ac = nullptr;
  const McuBlock* following = nullptr;  // the block after this one
  char* out = nullptr;                  // where the next coefficient goes
  char* limit = nullptr;                // end of this block
  char* bad = nullptr;                  // end of the first block with an impossible code or run; nullptr: none yet
};

// The bit that comes next, counted from `data`.
inline std::int64_t bit_position(const Cursor& cursor, const std::uint8_t* data) {
  return (cursor.next - data) * 8 - (63 - static_cast<std::int64_t>(cursor.used & 63));
}

struct EntropyKernels {
  // Decodes the DC coefficient of the block at `first`, found at bit `bit` of `data`, into `out`.
  void (*start)(const std::uint8_t* data, std::int64_t bit, const McuBlock* first, char* out, Cursor& cursor);
  // `chunks` times up to three table look-ups or one block's end. Two streams take turns.
  void (*run_one)(Cursor& cursor, int chunks);
  void (*run_two)(Cursor& first, Cursor& second, int chunks);
};

const EntropyKernels& entropy_kernels(Target target);
const EntropyKernels& scalar_entropy_kernels();
#if defined(__x86_64__)
const EntropyKernels& bmi2_entropy_kernels();
#endif

}  // namespace millrace::kernels::jpeg
