// An image's work as the stages of a decoder know it, once its descriptor and the head of its tables were found sound.
// Every stage counts for itself, by this alone, how much comes and goes: so damage never makes one wait for another.
// Values.
#pragma once

#include <cstdint>

#include "hls/decoder/limits.h"
#include "hls/wire/words.h"

namespace millrace {
namespace hls {

constexpr int kBlockSide = 8;      // samples
constexpr int kCoefficients = 64;  // of a block

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
  std::uint8_t packed_tables;  // of quantisation, in a packed image
  std::uint8_t by_planes;      // 1: the blocks of a row of MCUs come component by component, as packed images have them
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
// From the picture's size and sampling.
inline void put_mcus(Job& job) {
  const int across = kBlockSide * job.h, down = kBlockSide * job.v;
  job.mcu_columns = static_cast<std::uint16_t>((job.image.width + across - 1) / across);
  job.mcu_rows = static_cast<std::uint16_t>((job.image.height + down - 1) / down);
}

// From block to block, in the order in which they come.
class BlockWalk {
 public:
  void start() { component_ = across_ = down_ = mcu_column_ = mcu_row_ = 0; }

  int component() const { return component_; }
  // In blocks of the component: from the picture's left, and from the row of MCUs' first.
  int column(const Job& job) const { return mcu_column_ * (component_ == 0 ? job.h : 1) + across_; }
  int down() const { return down_; }
  int mcu_row() const { return mcu_row_; }

  void next(const Job& job) {
#pragma HLS INLINE
    if (++across_ < (component_ == 0 ? job.h : 1)) return;
    across_ = 0;
    if (job.by_planes != 0 && ++mcu_column_ < job.mcu_columns) return;
    if (job.by_planes != 0) mcu_column_ = 0;
    if (++down_ < (component_ == 0 ? job.v : 1)) return;
    down_ = 0;
    if (++component_ < job.components) return;
    component_ = 0;
    if (job.by_planes == 0 && ++mcu_column_ < job.mcu_columns) return;
    mcu_column_ = 0;
    ++mcu_row_;
  }

 private:
  int component_ = 0, across_ = 0, down_ = 0, mcu_column_ = 0, mcu_row_ = 0;
};

// Pixels travel in groups of eight along a row, the last group filled up.
constexpr int kGroup = 8;
inline int groups_of(int pixels) {
  return (pixels + kGroup - 1) / kGroup;
}

}  // namespace hls
}  // namespace millrace
