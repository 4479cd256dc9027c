// What the host and a card say to each other in memory, byte by byte: batches, descriptors, tables, completions. C++14,
// because Vitis HLS compiles it as well. All numbers are little-endian. Values.
//
//   commands:     Batch | Descriptor, ... | JpegTables, axis tables, ... as the descriptors say       (host writes)
//   encoded:      scans, packed images or rows, wherever the descriptors say                          (host writes)
//   tensors:      wherever the descriptors say                                                        (card writes)
//   completions:  Completion, ... one for each descriptor, in the order in which they finish          (card writes)
//
// One call of a kernel carries one batch. A card believes nothing: whatever a descriptor says, nothing is read or
// written outside the buffers, whose sizes are the call's own arguments, and the image completes with a reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace millrace {
namespace hls {

constexpr std::uint32_t kMostImages = 256;  // of a batch
constexpr std::uint32_t kUnit = 64;         // bytes: what offsets of tables and tensors count in, and a memory word
constexpr std::uint32_t kMostSide = 4096;   // pixels of a picture, before and after resampling
constexpr std::uint32_t kMostTaps = 64;     // source samples of an output sample, along a side
constexpr std::uint32_t kReadAhead = 64;    // bytes that must be readable in `encoded` after a source's last one

// What an image's bytes are.
enum class Source : std::uint8_t {
  kJpegScan = 0,  // entropy-coded data of a baseline JPEG from its first byte on, stuffed as in the file
  kPacked = 1,    // a packed image (kernels/packed), whole
  kRows = 2       // pixels, RGB or grey, a byte a channel, row by row without gaps
};

// Why an image is done. Everything but kDone is for the host, which makes the image elsewhere.
enum class Reason : std::uint8_t {
  kDone = 0,
  kBadDescriptor = 1,  // it contradicts itself or the buffers
  kNotHere = 2,        // this kernel makes no such images
  kDamaged = 3,        // the entropy-coded data is none, ends early or goes on after the last block
  kExtreme = 4,        // coefficients that inverse DCTs do not all do alike (kernels/jpeg/ordinary.h)
  kTooLong = 5         // the watchdog: more symbols than the image can have
};

// At byte 0 of the commands. What all images of a batch have in common: how pixels become elements.
struct Batch {
  std::uint32_t images;        // 1..kMostImages
  std::uint8_t channels;       // of the tensors: 1 or 3
  std::uint8_t element_bytes;  // 1, 2 or 4
  std::uint8_t interleaved;    // 0: NCHW; 1: NHWC
  std::uint8_t zero;
  std::uint8_t colour[4];  // which of R, G, B the tensor's channel c has; [3] is 0
  std::uint8_t zeroes[52];
  // store[c][x]: the bits of the element that pixel value x becomes in the tensor's channel c
  std::uint32_t store[3][256];
};

struct Descriptor {
  std::uint32_t cookie;  // comes back in the completion
  std::uint32_t source;  // byte in `encoded`
  std::uint32_t source_bytes;
  std::uint32_t tables;         // kUnits in `commands`: JpegTables; 0 for other sources
  std::uint32_t columns;        // kUnits in `commands`: an AxisTable for each output column of the window
  std::uint32_t rows;           // kUnits in `commands`: an AxisTable for each output row
  std::uint32_t tensor;         // kUnits in `tensors`
  std::uint32_t tensor_bytes;   // exactly width x height x channels x element_bytes of what is stored
  std::uint16_t width, height;  // of the picture as it is stored
  std::uint16_t crop_left, crop_top, crop_width, crop_height;  // in the picture; what the axis tables count in
  std::uint16_t out_width, out_height;                         // of the tensor
  std::uint8_t kind;                                           // a Source
  std::uint8_t column_taps, row_taps;                          // 1..kMostTaps
  std::uint8_t flip;                                           // 1: left to right, after resampling
  std::uint8_t rows_first;  // 1: rows are filtered before columns (see kernels/tensor/resample_spec.h)
  std::uint8_t grey;        // 1: the resampled pixels become luma; Batch::channels is 1
  std::uint8_t zeroes[10];
};

// What a scan is decoded with. Natural order is row by row; codes are as kernels/jpeg/canonical_code.h has them: a code
// of `length` bits is below limit[length - 1] when both are aligned to 16 bits, and symbols[offset[length] + code] is its
// symbol. Tables that no component names are all zero.
struct HuffmanTable {
  std::uint32_t limit[16];
  std::int32_t offset[17];
  std::uint8_t symbols[256];
  std::uint8_t zeroes[60];
};

struct JpegTables {
  std::uint8_t components;  // 1 or 3
  std::uint8_t h, v;        // blocks of the first component in an MCU: (1,1) (2,1) (2,2) (1,2) (4,1); grey: (1,1)
  std::uint8_t quant[3], dc[3], ac[3];  // which tables a component has
  std::uint8_t zeroes[4];
  std::uint32_t restart_interval;  // MCUs; 0: none
  std::uint8_t more_zeroes[44];
  std::uint16_t quant_table[4][64];  // natural order
  HuffmanTable dc_table[4], ac_table[4];
};

// An axis table is `taps` + 1 words of 32 bits an output: the first source sample, counted in the crop, then the
// weights of 22 fractional bits (kernels/tensor/axis_weights.h). start + taps <= the crop's side, and no start is below
// the one before it. One entry after the other, without gaps.

struct Completion {
  std::uint32_t cookie;
  std::uint8_t phase;   // of the call, 1..255: tells a completion of this call from what lay there
  std::uint8_t reason;  // a Reason
  std::uint8_t lane;    // which one had it
  std::uint8_t zero;
  std::uint32_t symbols;  // decoded; 0 where there are none
  // Of kDone: the sum of the tensor's words of 32 bits, the last one filled up with zeros, modulo 2^32: a holder of the
  // tensor sees whether it is what was written. Else 0.
  std::uint32_t sum;
};

static_assert(sizeof(Batch) == 64 + 3072 && std::is_trivially_copyable<Batch>::value, "the layout is a contract");
static_assert(sizeof(Descriptor) == 64 && std::is_trivially_copyable<Descriptor>::value, "the layout is a contract");
static_assert(sizeof(Completion) == 16 && std::is_trivially_copyable<Completion>::value, "the layout is a contract");
static_assert(sizeof(HuffmanTable) == 448 && sizeof(JpegTables) == 64 + 512 + 8 * 448, "the layout is a contract");
static_assert(offsetof(Batch, store) == 64 && offsetof(Descriptor, width) == 32 && offsetof(Descriptor, kind) == 48,
              "no gaps");

}  // namespace hls
}  // namespace millrace
