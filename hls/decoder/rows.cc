#include "hls/decoder/rows.h"

namespace millrace {
namespace hls {

void RowLoader::start(const Job& job) {
  const Descriptor& image = job.image;
  const std::uint32_t first = std::uint32_t{image.crop_top} * image.width + image.crop_left;
  next_ = image.source + first * job.components;
  bytes_ = std::uint32_t{image.crop_width} * job.components;
  step_ = std::uint32_t{image.width} * job.components;
  rows_left_ = image.crop_height;
  loader_.stop();
}

bool RowLoader::step(const ReadPort& encoded, BurstFifo& words) {
  bool moved = false;
  for (;;) {
    moved = loader_.step(encoded, words) || moved;
    if (!loader_.has_ended() || rows_left_ == 0) return moved;
    loader_.start(next_, bytes_);
    next_ += step_;
    --rows_left_;
  }
}

void RowReader::start(const Job& job) {
  job_ = job;
  row_at_ =
      job.image.source + (std::uint32_t{job.image.crop_top} * job.image.width + job.image.crop_left) * job.components;
  bytes_.start(row_at_);
  rows_left_ = job.image.crop_height;
  group_ = 0;
  part_ = 0;
}

bool RowReader::step(BurstFifo& words, GroupFifo& pixels) {
  bool moved = false;
  while (rows_left_ > 0 && take_part(words, pixels)) moved = true;
  return moved;
}

// Eight bytes of a group; with the last of them it goes.
bool RowReader::take_part(BurstFifo& words, GroupFifo& pixels) {
#pragma HLS PIPELINE II = 1
  const std::uint32_t channels = job_.components;
  const std::uint32_t left = job_.image.crop_width - static_cast<std::uint32_t>(kGroup * group_);
  const std::uint32_t size = channels * (left < kGroup ? left : kGroup), rest = size - part_;
  const std::uint32_t count = rest < 8 ? rest : 8;
  std::uint64_t bytes = 0;
  if ((rest <= 8 && pixels.full()) || !bytes_.take(words, count, bytes)) return false;
  for (std::uint32_t i = 0; i < 8; ++i) held_[part_ + i] = static_cast<std::uint8_t>(bytes >> (8 * i));
  part_ += count;
  if (part_ < size) return true;
  part_ = 0;
  Group group;
  for (std::uint32_t i = 0; i < kGroup; ++i) {
#pragma HLS UNROLL
    for (std::uint32_t plane = 0; plane < 3; ++plane)
      group.plane[plane][i] = held_[channels * i + (plane < channels ? plane : 0)];
  }
  pixels.write(group);
  if (++group_ < groups_of(job_.image.crop_width)) return true;
  group_ = 0;
  --rows_left_;
  row_at_ += std::uint32_t{job_.image.width} * channels;
  bytes_.start(row_at_);
  return true;
}

}  // namespace hls
}  // namespace millrace
