// Samples of blocks to groups of pixels of the crop, row by row, chroma brought to the size of luma as libjpeg-turbo
// does it ("fancy" upsampling; repeated where luma has four a side). Pictures of four columns or less whose chroma has
// half as many, where libjpeg-turbo repeats too, are none that the host hands over.
//
//   sample rows ──▶ two rows of MCUs, luma and chroma ──▶ groups
//                   one is filled while the other one leaves
//
// A word is stored and a group leaves each clock: each memory has a port for either. Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/inverse_dct.h"

namespace millrace {
namespace hls {

using GroupFifo = Fifo<Group, 16>;

// How chroma is smoothed: 3/4 of the nearer sample, 1/4 of the further.
enum class Smoothing : std::uint8_t { kNone, kAcross, kDown, kBoth };
Smoothing smoothing_of(int h, int v);

class Raster {
 public:
  void start(const Job& job);
  bool step(SampleFifo& samples, GroupFifo& groups);

 private:
  // Two rows of MCUs.
  static constexpr int kLumaRows = 2 * kBlockSide * 2, kChromaRows = 2 * kBlockSide;

  bool has_room() const;
  void store(SampleRow row);
  bool is_ready() const;
  Group make_group() const;
  void put_chroma(int plane, int first, std::uint8_t (&out)[kGroup]) const;
  void leave_group();

  Job job_ = {};
  Smoothing smoothing_ = Smoothing::kNone;
  int h_shift_ = 0, v_shift_ = 0;
  int chroma_columns_ = 0, chroma_rows_ = 0;  // of the picture
  // Where the next sample row goes.
  BlockWalk walk_;
  int line_ = 0;
  // What leaves next: a row of the picture, a group of the crop's.
  int row_ = 0, end_row_ = 0, group_ = 0;

  std::uint8_t luma_[kLumaRows][kMostSide];
  std::uint8_t chroma_[2][kChromaRows][kMostSide];
};

}  // namespace hls
}  // namespace millrace
