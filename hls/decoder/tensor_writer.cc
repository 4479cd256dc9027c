#include "hls/decoder/tensor_writer.h"

namespace millrace {
namespace hls {
namespace {

constexpr std::uint32_t kNumbersOfWord = kBurstBytes / 4;
constexpr std::uint32_t kStoreUnits = sizeof(Batch::store) / kUnit;

// Pillow's convert("L"): ITU-R 601-2 luma in 16 fractional bits, rounded.
void to_luma(Group& group) {
  for (int i = 0; i < kGroup; ++i) {
#pragma HLS UNROLL
    const int sum = group.plane[0][i] * 19595 + group.plane[1][i] * 38470 + group.plane[2][i] * 7471;
    group.plane[0][i] = static_cast<std::uint8_t>((sum + 0x8000) >> 16);
  }
}

}  // namespace

void TensorWriter::start(const Job& job) {
  job_ = job;
  state_ = State::kLoad;
  loaded_ = 0;
  mask_ = job.element_bytes == 4 ? 0xffffffffU : (1U << (8 * job.element_bytes)) - 1;
  rows_left_ = job.image.out_height;
  group_ = 0;
  const std::uint64_t first = std::uint64_t{job.image.tensor} * kUnit;
  const std::uint64_t plane = std::uint64_t{job.image.out_width} * job.image.out_height * job.element_bytes;
  for (unsigned c = 0; c < 3; ++c) runs_[c].start(first + c * plane);
}

bool TensorWriter::step(SetupFifo& setup, GroupFifo& pixels, const WritePort& tensors, FlagFifo& done) {
  bool moved = false;
  if (state_ == State::kLoad) moved = load(setup);
  if (state_ == State::kStore) moved = store(pixels, tensors) || moved;
  if (state_ == State::kTell && !done.full()) {
    done.write(1);
    state_ = State::kIdle;
    return true;
  }
  return moved;
}

bool TensorWriter::load(SetupFifo& setup) {
  bool moved = false;
  while (state_ == State::kLoad && !setup.empty()) {
#pragma HLS PIPELINE II = 1
    const Burst word = setup.read();
    for (unsigned i = 0; i < kNumbersOfWord; ++i) {
#pragma HLS UNROLL
      const std::uint32_t at = loaded_ * kNumbersOfWord + i;
      elements_[at / 256][at % 256] = number_of(word, i) & mask_;
    }
    moved = true;
    if (++loaded_ == kStoreUnits) state_ = State::kStore;
  }
  return moved;
}

bool TensorWriter::store(GroupFifo& pixels, const WritePort& tensors) {
  const int width = job_.image.out_width;
  bool moved = false;
  while (rows_left_ > 0 && !pixels.empty()) {
#pragma HLS PIPELINE II = 1
    const int left = width - kGroup * group_;
    Group group = pixels.read();
    if (job_.channels == 1) to_luma(group);
    store_group(group, left < kGroup ? left : kGroup, tensors);
    moved = true;
    if (++group_ < groups_of(width)) continue;
    group_ = 0;
    --rows_left_;
  }
  if (rows_left_ > 0) return moved;
  const int runs = job_.interleaved != 0 ? 1 : job_.channels;
  for (int c = 0; c < runs; ++c) runs_[c].flush(tensors);
  state_ = State::kTell;
  return true;
}

void TensorWriter::store_group(const Group& group, int pixels, const WritePort& tensors) {
  for (int c = 0; c < job_.channels; ++c) {
    if (job_.interleaved != 0) break;
    const std::uint8_t* const plane = group.plane[job_.colour[c]];
    for (int i = 0; i < pixels; ++i) runs_[c].append(tensors, elements_[c][plane[i]], job_.element_bytes);
  }
  for (int i = 0; i < pixels; ++i) {
    if (job_.interleaved == 0) break;
    for (int c = 0; c < job_.channels; ++c)
      runs_[0].append(tensors, elements_[c][group.plane[job_.colour[c]][i]], job_.element_bytes);
  }
}

}  // namespace hls
}  // namespace millrace
