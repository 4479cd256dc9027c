// Makes a seek index while an image is decoded in order. Thread-bound(the lane that owns it).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/jpeg/seek_index.h"
#include "kernels/cpu/target.h"

namespace millrace::kernels::jpeg {

class SeekRecorder {
 public:
  explicit SeekRecorder(Target target) : target_(target) {}

  // Forgets what was noted. `start`: where decoding begins, its bit counted in the unstuffed data. Where the DC levels
  // of the next `blocks` blocks have to be written until write().
  std::int16_t* begin(const SeekGrid& grid, const SeekPlace& start, std::int64_t blocks);

  // A place in the unstuffed data, `block` counted from the image's first. Those not behind the last one are left out.
  void add(std::int64_t block, std::int64_t bit);
  // The last that was added, or the start: without its predictors.
  const SeekPlace& last() const { return places_.back(); }

  // The index into `out`: that of `known`, where `start` is its end; empty: there was none; and what was noted. `data`:
  // the unstuffed data, which begins at byte `first_byte` of the scan; `data_bytes`: of the whole scan, stuffed.
  // What does not fit into the format ends the index. False: nothing was gained; `out` means nothing.
  bool write(IndexBytes known, const std::uint8_t* data, std::size_t first_byte, std::size_t data_bytes,
             std::uint64_t owner, std::vector<std::uint8_t>& out) const;

 private:
  Target target_;
  DcPredictors predictors_at(std::int64_t mcu) const;

  SeekGrid grid_;
  std::vector<SeekPlace> places_;
  std::vector<std::int16_t> levels_;  // of the blocks behind the start
};

}  // namespace millrace::kernels::jpeg
