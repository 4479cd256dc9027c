// An image's work as the stages of a decoder know it, once its descriptor and the head of its tables were found sound.
// Every stage counts for itself, by this alone, how much comes and goes: so damage never makes one wait for another.
// Values.
#pragma once

#include <cstdint>

#include "hls/wire/words.h"

namespace millrace {
namespace hls {

constexpr int kLanes = 4;          // of a compute unit
constexpr int kSlots = 2;          // images that take turns in a lane
constexpr int kBlockSide = 8;      // samples
constexpr int kCoefficients = 64;  // of a block

// What a slot's memories hold. An image that needs more is not made here.
constexpr std::uint32_t kRingPixels = 65536;  // rows between the two filters: taps x the width of such a row
constexpr std::uint32_t kAxisWords = 32768;   // the column table, outputs x (taps + 1): enough for six lobes

// In units of the commands.
constexpr std::uint32_t kBatchUnits = sizeof(Batch) / kUnit;
constexpr std::uint32_t kHeadUnits = 1, kQuantUnits = 8, kCodeUnits = sizeof(HuffmanTable) / kUnit;
constexpr std::uint32_t kTablesUnits = sizeof(JpegTables) / kUnit;
constexpr int kTables = 4, kCodes = 2 * kTables;  // of quantisation; of DC codes, then of AC codes
static_assert(kTablesUnits * kUnit == sizeof(JpegTables), "tables are whole units");

// Without constructors, as FIFOs want it.
struct Job {
  Descriptor image;
  std::uint32_t restart_interval;
  std::uint8_t components, h, v;  // as JpegTables has them
  std::uint8_t quant[3], dc[3], ac[3];
  std::uint16_t mcu_columns, mcu_rows;
  // of the batch
  std::uint8_t channels, element_bytes, interleaved;
  std::uint8_t colour[3];
};

inline int blocks_in_mcu(const Job& job) {
  return job.components == 1 ? 1 : job.h * job.v + 2;
}
// Of a block of an MCU.
inline int component_of(const Job& job, int block) {
  const int luma = job.components == 1 ? 1 : job.h * job.v;
  return block < luma ? 0 : block - luma + 1;
}
inline std::uint32_t mcus(const Job& job) {
  return std::uint32_t{job.mcu_columns} * job.mcu_rows;
}

// Pixels travel in groups of eight along a row, the last group filled up.
constexpr int kGroup = 8;
inline int groups_of(int pixels) {
  return (pixels + kGroup - 1) / kGroup;
}

}  // namespace hls
}  // namespace millrace
