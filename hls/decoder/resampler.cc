#include "hls/decoder/resampler.h"

namespace millrace {
namespace hls {
namespace {

constexpr std::uint32_t kHalf = 1U << (kWeightBits - 1);
constexpr std::uint32_t kNumbers = kBurstBytes / 4;  // in a word of a table

// Sums are modulo 2^32, so that hostile weights do no harm; those of real ones stay within 32 bits.
std::uint8_t rounded(std::uint32_t sum) {
  const int value = static_cast<std::int32_t>(sum) >> kWeightBits;
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

}  // namespace

void Resampler::start(const Job& job) {
  job_ = job;
  state_ = State::kLoadColumns;
  planes_ = job.components;
  is_wrong_ = false;
  at_ = kNumbers;
  loaded_ = 0;
  column_start_ = row_start_ = 0;
  taken_ = made_ = slot_ = 0;
  ring_width_ = job.image.rows_first != 0 ? job.image.crop_width : job.image.out_width;
  group_ = 0;
}

bool Resampler::step(SetupFifo& setup, GroupFifo& pixels, GroupFifo& out, FlagFifo& wrong) {
#pragma HLS ARRAY_PARTITION variable = row_ dim = 1 complete
#pragma HLS ARRAY_PARTITION variable = row_ dim = 2 cyclic factor = 8
#pragma HLS ARRAY_PARTITION variable = line_ dim = 1 complete
#pragma HLS ARRAY_PARTITION variable = line_ dim = 2 cyclic factor = 8
#pragma HLS ARRAY_PARTITION variable = ring_ dim = 1 complete
#pragma HLS ARRAY_RESHAPE variable = ring_ dim = 2 cyclic factor = 8
#pragma HLS ARRAY_PARTITION variable = columns_ cyclic factor = 8
#pragma HLS ARRAY_PARTITION variable = sums_ dim = 1 complete
#pragma HLS ARRAY_RESHAPE variable = sums_ dim = 2 cyclic factor = 8
#pragma HLS BIND_STORAGE variable = ring_ type = ram_2p impl = uram
#pragma HLS BIND_STORAGE variable = columns_ type = ram_2p impl = uram
  bool moved = false;
  for (bool now = true; now; moved = moved || now) {
    now = false;
    switch (state_) {
      case State::kIdle:
        break;
      case State::kLoadColumns:
        now = load_columns(setup);
        break;
      case State::kLoadRow:
        now = load_row(setup);
        break;
      case State::kTakeRow:
      case State::kDrain:
        now = take_row(pixels);
        break;
      case State::kMakeRow:
        make_row();
        now = true;
        break;
      case State::kGiveRow:
        now = give_row(out);
        break;
      case State::kTell:
        if (wrong.full()) break;
        wrong.write(is_wrong_ ? 1 : 0);
        state_ = State::kIdle;
        return true;
    }
  }
  return moved;
}

bool Resampler::next_word(SetupFifo& setup, std::uint32_t& word) {
  if (at_ == kNumbers) {
    if (setup.empty()) return false;
    word_ = setup.read();
    at_ = 0;
  }
  word = number_of(word_, at_++);
  return true;
}

std::uint32_t Resampler::sound_start(std::uint32_t start, std::uint32_t before, std::uint32_t most) {
  if (start >= before && start <= most) return start;
  is_wrong_ = true;
  return start < before ? before : most;
}

bool Resampler::load_columns(SetupFifo& setup) {
  const std::uint32_t in_entry = job_.image.column_taps + 1U, numbers = job_.image.out_width * in_entry;
  const std::uint32_t most = job_.image.crop_width - std::uint32_t{job_.image.column_taps};
  bool moved = false;
  std::uint32_t word = 0, in = loaded_ % in_entry;
  while (loaded_ < numbers && next_word(setup, word)) {
#pragma HLS PIPELINE II = 1
    if (in == 0) word = column_start_ = sound_start(word, column_start_, most);
    columns_[loaded_++] = word;
    in = in + 1 == in_entry ? 0 : in + 1;
    moved = true;
  }
  if (loaded_ < numbers) return moved;
  state_ = State::kLoadRow;
  at_ = kNumbers;  // the next table begins with a word of its own
  loaded_ = 0;
  return true;
}

bool Resampler::load_row(SetupFifo& setup) {
  const std::uint32_t in_entry = job_.image.row_taps + 1U;
  bool moved = false;
  while (loaded_ < in_entry && next_word(setup, entry_[loaded_])) {
#pragma HLS PIPELINE II = 1
    ++loaded_;
    moved = true;
  }
  if (loaded_ < in_entry) return moved;
  loaded_ = 0;
  row_start_ = sound_start(entry_[0], row_start_, job_.image.crop_height - std::uint32_t{job_.image.row_taps});
  state_ = row_start_ + job_.image.row_taps == taken_ ? State::kMakeRow : State::kTakeRow;
  return true;
}

bool Resampler::take_row(GroupFifo& pixels) {
  const int groups = groups_of(job_.image.crop_width);
  bool moved = false;
  if (state_ == State::kDrain && taken_ == job_.image.crop_height) {
    state_ = State::kTell;
    return true;
  }
  while (group_ < groups && !pixels.empty()) {
#pragma HLS PIPELINE II = 1
    const Group group = pixels.read();
    for (int plane = 0; plane < 3; ++plane) {
#pragma HLS UNROLL
      for (int i = 0; i < kGroup; ++i) row_[plane][kGroup * group_ + i] = group.plane[plane][i];
    }
    ++group_;
    moved = true;
  }
  if (group_ < groups) return moved;
  group_ = 0;
  if (state_ == State::kTakeRow) put_into_ring();
  ++taken_;
  if (state_ == State::kTakeRow && taken_ == row_start_ + job_.image.row_taps) state_ = State::kMakeRow;
  return true;
}

// Rows that no output wants any more go no further.
void Resampler::put_into_ring() {
  const std::uint32_t slot = slot_;
  slot_ = slot_ + 1 == job_.image.row_taps ? 0 : slot_ + 1;
  if (taken_ < row_start_) return;
  for (int plane = 0; plane < 3; ++plane) {
#pragma HLS UNROLL
    if (plane >= planes_) break;
    std::uint8_t* const to = &ring_[plane][slot * ring_width_];
    if (job_.image.rows_first == 0) {
      filter_across(row_, plane, to);
      continue;
    }
    for (std::uint32_t x = 0; x < ring_width_; ++x) to[x] = row_[plane][x];
  }
}

void Resampler::make_row() {
  for (int plane = 0; plane < 3; ++plane) {
#pragma HLS UNROLL
    if (plane >= planes_) break;
    if (job_.image.rows_first == 0) {
      filter_down(plane, result_[plane]);
    } else {
      filter_down(plane, line_[plane]);
      filter_across(line_, plane, result_[plane]);
    }
  }
  state_ = State::kGiveRow;
}

bool Resampler::give_row(GroupFifo& out) {
  const int width = job_.image.out_width;
  bool moved = false;
  while (group_ < groups_of(width) && !out.full()) {
#pragma HLS PIPELINE II = 1
    Group group;
    for (int i = 0; i < kGroup; ++i) {
#pragma HLS UNROLL
      const int x = kGroup * group_ + i, at = x >= width ? 0 : job_.image.flip != 0 ? width - 1 - x : x;
      for (int plane = 0; plane < 3; ++plane) group.plane[plane][i] = result_[plane < planes_ ? plane : 0][at];
    }
    out.write(group);
    ++group_;
    moved = true;
  }
  if (group_ < groups_of(width)) return moved;
  group_ = 0;
  state_ = ++made_ == job_.image.out_height ? State::kDrain : State::kLoadRow;
  return true;
}

void Resampler::filter_across(const Rows& in, int plane, std::uint8_t* out) const {
  const int taps = job_.image.column_taps;
  const std::uint32_t* entry = columns_;
  for (int x = 0; x < job_.image.out_width; ++x, entry += taps + 1) {
    const std::uint8_t* const samples = &in[plane][entry[0]];
    std::uint32_t sum = kHalf;
    for (int t = 0; t < taps; ++t) {
#pragma HLS UNROLL factor = 8
      sum += entry[1 + t] * samples[t];
    }
    out[x] = rounded(sum);
  }
}

void Resampler::filter_down(int plane, std::uint8_t* out) {
  std::uint32_t* const sums = sums_[plane];
  for (std::uint32_t x = 0; x < ring_width_; ++x) sums[x] = kHalf;
  std::uint32_t slot = slot_;  // of the first of the window's rows: the ring is as high as the window
  for (int t = 0; t < job_.image.row_taps; ++t) {
    const std::uint8_t* const samples = &ring_[plane][slot * ring_width_];
    for (std::uint32_t x = 0; x < ring_width_; ++x) {
#pragma HLS UNROLL factor = 8
      sums[x] += entry_[1 + t] * samples[x];
    }
    slot = slot + 1 == job_.image.row_taps ? 0 : slot + 1;
  }
  for (std::uint32_t x = 0; x < ring_width_; ++x) out[x] = rounded(sums[x]);
}

}  // namespace hls
}  // namespace millrace
