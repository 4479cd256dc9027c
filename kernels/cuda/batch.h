// What the host tells the kernels of a batch, and what the entropy decoder hands to the reconstruction. Plain values of
// fixed width, laid out alike on host and device; offsets count from the batch's own arrays.
//
//   encoded bytes ──K1: tokenise, or unpack──▶ tokens, block entries ──K2: reconstruct──▶ tensors
//
// Image bytes are hostile: K1 reads nothing outside [bytes, bytes + byte_count), writes nothing outside the image's own
// token and block ranges, and whatever is odd ends in a Status other than kDone: the CPU decides such an image.
#pragma once

#include <cstdint>

#include "kernels/tensor/resample_spec.h"

namespace millrace::kernels::cuda {

inline constexpr int kMostComponents = 3;
inline constexpr int kMostBlocksInMcu = 6;

// An AC coefficient: the zeros before it (bits 12-15) and its value (bits 0-11, two's complement). 16 zeros without a
// value (ZRL) are the token kZeroRun. EOB has none. Values beyond 12 bits make the image kNotHere.
using Token = std::uint16_t;
inline constexpr Token kZeroRun = 0xf000;

// A block, in the scan's order (MCU by MCU, in an MCU as T.81 A.2.3 orders them).
struct BlockEntry {
  std::uint32_t first_token;  // from the image's first
  std::int16_t dc;            // with the prediction added, not dequantised
  std::uint16_t tokens;
};
static_assert(sizeof(BlockEntry) == 8);

enum class Status : std::uint32_t {
  kDone = 0,
  kNotHere,   // odd or damaged data, or more than the kernels provide for: libjpeg-turbo decides
  kNotInTime  // the streams did not synchronise within the bound
};

// Where decoding may begin, from a seek index or after a restart marker. Segments of an image come in rising order.
struct Segment {
  std::uint32_t first_bit;  // in the scan's data as it is in the file, stuffing included
  std::uint32_t end_bit;    // where it must end, or the restart marker after it begins
  std::uint32_t first_mcu;
  std::uint32_t mcus;
  std::int16_t predictors[kMostComponents];
  std::int16_t end_predictors[kMostComponents];  // checked where a next segment of the index says them
  std::uint32_t checked;                         // one of the following
};
inline constexpr std::uint32_t kEndUnknown = 0;
inline constexpr std::uint32_t kEndExact = 1;   // at this bit, with these predictors
inline constexpr std::uint32_t kEndPadded = 2;  // in the last byte before a restart marker

struct ComponentJob {
  std::uint8_t h, v;                 // blocks in an MCU
  std::uint16_t dc_table, ac_table;  // in the batch's tables
  std::uint16_t quant;               // in the batch's quantisation tables
};

// One tensor of an image. An image of several views has a job for each, one after the other: the first one's scan is
// decoded, the others have its ranges of tokens and blocks, and `decoded` is its number.
struct ImageJob {
  std::uint64_t bytes;       // where the scan's data begins in the batch's encoded bytes, stuffing included
  std::uint32_t byte_count;  // to the end of the file; 0: a packed image, whose groups are unpacked, or a further view
  std::uint32_t restart_interval;  // MCUs; 0: none
  std::uint16_t width, height;
  std::uint16_t mcu_columns, mcu_rows;
  std::uint8_t components, blocks_in_mcu;
  std::uint8_t flip;  // 1: the tensor's left and right change places, after the turn
  std::uint8_t turn;  // by the EXIF orientation: kMirrorsColumns and the others, or 0
  ComponentJob component[kMostComponents];

  std::uint64_t first_block;  // in the batch's block entries
  std::uint32_t first_mcu_row,
      end_mcu_row;            // MCU rows whose blocks are wanted: those of the crop and what upsampling looks at
  std::uint64_t first_token;  // in the batch's tokens; a multiple of 4
  std::uint32_t token_capacity;
  std::uint32_t segments;  // 0: none is known, the streams find each other
  std::uint64_t first_segment;

  std::uint16_t crop_left, crop_top, crop_width, crop_height;  // pixels of the image
  std::uint64_t output;                                        // bytes from the batch's first tensor
  std::uint32_t column_weights, row_weights;                   // in the batch's weight tables, or kComputed

  // Along the stored picture's columns and rows, as the crop: the size to which it is resampled, and which of its
  // outputs is the tensor's first, counted as in the turned picture. 0: to the tensor's size.
  std::uint16_t resized_width, resized_height, window_left, window_top;
  std::uint16_t tensor_width, tensor_height;  // as the tensor is, turned
  Filter filter;
  std::uint32_t decoded;  // in the batch's jobs: whose Status says what became of the image
};
inline constexpr std::uint32_t kComputed = 0xffffffff;

// ImageJob::turn, a sum: the crop's columns, its rows from the last to the first; then its columns become the tensor's
// rows.
inline constexpr std::uint8_t kMirrorsColumns = 1, kMirrorsRows = 2, kSwapsSides = 4;

}  // namespace millrace::kernels::cuda
