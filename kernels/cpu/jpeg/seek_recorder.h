// Makes a seek index while an image is decoded in order. Thread-bound(the lane that owns it).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/target.h"
#include "kernels/jpeg/seek_index.h"

namespace millrace::kernels::jpeg {

class SeekRecorder {
 public:
  explicit SeekRecorder(Target target) : target_(target) {}

  // Forgets what was noted. `start`: where decoding begins, its bit counted in the unstuffed data. Where the DC levels
  // of the next `blocks` blocks have to be written until write().
  std::int16_t* begin(const SeekGrid& grid, const SeekPlace& start, std::int64_t blocks);

  // Before an MCU.
  struct Place {
    std::int64_t block = 0;  // counted from the image's first
    std::int64_t bit = 0;    // of the unstuffed data
  };
  // Those not after the last one are left out.
  void add(const Place& place) {
    if (place.block > places_.back().block) places_.push_back(place);
  }
  // The last that was added, or the start.
  const Place& last() const { return places_.back(); }

  // What was decoded.
  struct Source {
    const Header& header;                     // of a clean file: EOI is the first marker after its scan's data
    std::size_t data_bytes = 0;               // of the scan, up to EOI
    std::size_t first_byte = 0;               // of the scan, where `unstuffed` begins
    const std::uint8_t* unstuffed = nullptr;  // with 64 bytes after it that can be read
  };
  // The index into `out`: that of `known`, which is of the same scan and ends where `start` is (empty: there was none),
  // and what was noted. What does not fit into the format ends the index. False: nothing was gained; `out` means
  // nothing.
  bool write(IndexBytes known, const Source& source, std::uint64_t owner, std::vector<std::uint8_t>& out);

 private:
  DcPredictors predictors_at(std::int64_t block) const;

  const Target target_;
  SeekGrid grid_;
  std::vector<Place> places_;
  std::vector<std::int16_t> levels_;   // of the blocks after the start
  std::vector<std::uint32_t> before_;  // a lot of data each: stuffed bytes before it
};

}  // namespace millrace::kernels::jpeg
