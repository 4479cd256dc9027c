// The crop's pixels, filtered along both sides with the host's weights, rounded to bytes between the two passes.
//
//   columns first:  row ─▶ filter across ─▶ ring of rows ─▶ filter down ──────────────────▶ row of the tensor
//   rows first:     row ──────────────────▶ ring of rows ─▶ filter down ─▶ filter across ─▶ row of the tensor
//
// The ring has as many rows as an output has taps. Weights for columns are loaded before the first row; those for a row
// come when it is made. Eight taps of three channels a clock across, eight pixels of three channels a clock down: the
// same 24 multipliers. Rows leave mirrored where the descriptor says so, and grey ones with three planes alike. Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/colour.h"

namespace millrace {
namespace hls {

constexpr int kWeightBits = 22;

class Resampler {
 public:
  void start(const Job& job);
  // `setup`: the column table, then the row table. `wrong`: whether a table leaves the crop or goes back, behind the last
  // row; the pixels mean nothing then.
  bool step(SetupFifo& setup, GroupFifo& pixels, GroupFifo& out, FlagFifo& wrong);

 private:
  enum class State : std::uint8_t { kIdle, kLoadColumns, kLoadRow, kTakeRow, kMakeRow, kGiveRow, kDrain, kTell };
  using Rows = std::uint8_t[3][kMostSide];

  bool load_columns(SetupFifo& setup);
  bool load_row(SetupFifo& setup);
  bool next_word(SetupFifo& setup, std::uint32_t& word);
  std::uint32_t sound_start(std::uint32_t start, std::uint32_t before, std::uint32_t most);
  bool take_row(GroupFifo& pixels);
  void put_into_ring();
  void make_row();
  bool give_row(GroupFifo& out);
  void filter_across(const Rows& in, int plane, std::uint8_t* out) const;
  void filter_down(int plane, std::uint8_t* out);

  Job job_ = {};
  State state_ = State::kIdle;
  int planes_ = 0;
  bool is_wrong_ = false;

  Burst word_ = {};       // of a table
  std::uint32_t at_ = 0;  // the next number in it
  std::uint32_t loaded_ = 0;
  std::uint32_t entry_[kMostTaps + 1] = {};  // of the row that is made next
  std::uint32_t column_start_ = 0, row_start_ = 0;

  std::uint32_t taken_ = 0;  // rows of the crop
  std::uint32_t made_ = 0;   // rows of the tensor
  std::uint32_t slot_ = 0;   // of the ring: the next row's
  std::uint32_t ring_width_ = 0;
  int group_ = 0;

  std::uint32_t columns_[kAxisWords] = {};
  Rows row_ = {}, line_ = {}, result_ = {};
  std::uint8_t ring_[3][kRingPixels] = {};
  std::uint32_t sums_[3][kMostSide] = {};
};

}  // namespace hls
}  // namespace millrace
