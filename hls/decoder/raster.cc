#include "hls/decoder/raster.h"

namespace millrace {
namespace hls {
namespace {

bool goes_down(Smoothing smoothing) {
  return smoothing == Smoothing::kDown || smoothing == Smoothing::kBoth;
}

int clamped(int value, int last) {
  return value < 0 ? 0 : value > last ? last : value;
}

}  // namespace

Smoothing smoothing_of(int h, int v) {
  if (h == 1 && v == 2) return Smoothing::kDown;
  if (h != 2) return Smoothing::kNone;
  return v == 2 ? Smoothing::kBoth : Smoothing::kAcross;
}

void Raster::start(const Job& job) {
  job_ = job;
  smoothing_ = smoothing_of(job.h, job.v);
  h_shift_ = job.h == 4 ? 2 : job.h - 1;
  v_shift_ = job.v - 1;
  chroma_columns_ = (job.image.width + job.h - 1) / job.h;
  chroma_rows_ = (job.image.height + job.v - 1) / job.v;
  walk_.start();
  line_ = 0;
  row_ = job.image.crop_top;
  end_row_ = job.image.crop_top + job.image.crop_height;
  group_ = 0;
}

bool Raster::step(SampleFifo& samples, GroupFifo& groups) {
// A word is eight samples. The nearer and the further row of chroma are never both even or both odd.
#pragma HLS ARRAY_RESHAPE variable = luma_ dim = 2 cyclic factor = 8
#pragma HLS ARRAY_RESHAPE variable = chroma_ dim = 3 cyclic factor = 8
#pragma HLS ARRAY_PARTITION variable = chroma_ dim = 1 complete
#pragma HLS ARRAY_PARTITION variable = chroma_ dim = 2 cyclic factor = 2
#pragma HLS BIND_STORAGE variable = luma_ type = ram_2p impl = uram
#pragma HLS BIND_STORAGE variable = chroma_ type = ram_2p impl = uram
  bool moved = false;
  for (;;) {
#pragma HLS PIPELINE II = 1
    bool now = false;
    if (!samples.empty() && has_room()) {
      store(samples.read());
      now = true;
    }
    if (!groups.full() && is_ready()) {
      groups.write(make_group());
      leave_group();
      now = true;
    }
    if (!now) return moved;
    moved = true;
  }
}

// A row of MCUs takes the place of the last but one: nothing of that may be wanted, nor the chroma row above the first
// pixels of the last one.
bool Raster::has_room() const {
  const int free_from = kBlockSide * job_.v * (walk_.mcu_row() - 1) + (goes_down(smoothing_) ? 1 : 0);
  return walk_.mcu_row() < 2 || row_ >= end_row_ || row_ >= free_from;
}

void Raster::store(SampleRow row) {
  const int component = walk_.component(), half = walk_.mcu_row() % 2, column = kBlockSide * walk_.column(job_);
  std::uint8_t* const to = component == 0 ? &luma_[kBlockSide * (half * job_.v + walk_.down()) + line_][column]
                                          : &chroma_[component - 1][kBlockSide * half + line_][column];
  for (int i = 0; i < kBlockSide; ++i) {
#pragma HLS UNROLL
    to[i] = static_cast<std::uint8_t>(row >> (8 * i));
  }
  if (++line_ < kBlockSide) return;
  line_ = 0;
  walk_.next(job_);
}

// Whether all samples of the next row are there.
bool Raster::is_ready() const {
  if (row_ >= end_row_) return false;
  if (!goes_down(smoothing_)) return row_ / (kBlockSide * job_.v) < walk_.mcu_row();
  return clamped(row_ / 2 + row_ % 2, chroma_rows_ - 1) / kBlockSide < walk_.mcu_row();
}

Group Raster::make_group() const {
  const int first = job_.image.crop_left + kGroup * group_;
  const std::uint8_t* const luma = luma_[row_ % (2 * kBlockSide * job_.v)];
  Group group = {};
  for (int i = 0; i < kGroup; ++i) {
#pragma HLS UNROLL
    group.plane[0][i] = luma[(first + i) % kMostSide];
  }
  for (int plane = 0; plane < 2; ++plane) {
#pragma HLS UNROLL
    if (job_.components == 3) put_chroma(plane, first, group.plane[1 + plane]);
  }
  return group;
}

void Raster::put_chroma(int plane, int first, std::uint8_t (&out)[kGroup]) const {
  const int near_row = row_ >> v_shift_;
  const int far_row = clamped(near_row + (row_ % 2 == 0 ? -1 : 1), chroma_rows_ - 1);
  const std::uint8_t* const near = chroma_[plane][near_row % kChromaRows];
  const std::uint8_t* const far = chroma_[plane][far_row % kChromaRows];
  if (smoothing_ == Smoothing::kNone || smoothing_ == Smoothing::kDown) {
    for (int i = 0; i < kGroup; ++i) {
#pragma HLS UNROLL
      const int at = ((first + i) % kMostSide) >> h_shift_, sample = near[at];
      out[i] = static_cast<std::uint8_t>(smoothing_ == Smoothing::kNone ? sample
                                                                        : (3 * sample + far[at] + 1 + row_ % 2) >> 2);
    }
    return;
  }
  int sums[kGroup / 2 + 2];  // from the sample before the first pixel's on
  for (int i = 0; i < kGroup / 2 + 2; ++i) {
#pragma HLS UNROLL
    const int at = clamped(first / 2 - 1 + i, chroma_columns_ - 1);
    sums[i] = smoothing_ == Smoothing::kBoth ? 3 * near[at] + far[at] : near[at];
  }
  for (int i = 0; i < kGroup; ++i) {
#pragma HLS UNROLL
    const int odd = (first + i) % 2, at = (first + i) / 2 - first / 2 + 1;
    const int weighted = 3 * sums[at] + sums[odd == 1 ? at + 1 : at - 1];
    out[i] = static_cast<std::uint8_t>(smoothing_ == Smoothing::kBoth ? (weighted + 8 - odd) >> 4
                                                                      : (weighted + 1 + odd) >> 2);
  }
}

void Raster::leave_group() {
  if (++group_ < groups_of(job_.image.crop_width)) return;
  group_ = 0;
  ++row_;
}

}  // namespace hls
}  // namespace millrace
