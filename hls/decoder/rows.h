// Rows of pixels from memory to groups of the crop's: of each row of the crop, the bytes that lie in it.
// Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/jpeg/byte_stream.h"
#include "hls/decoder/raster.h"

namespace millrace {
namespace hls {

// The words in which a crop's rows lie.
class RowLoader {
 public:
  void start(const Job& job);
  bool step(const ReadPort& encoded, BurstFifo& words);

 private:
  SourceLoader loader_;
  std::uint32_t next_ = 0, bytes_ = 0, step_ = 0, rows_left_ = 0;
};

class RowReader {
 public:
  void start(const Job& job);
  bool step(BurstFifo& words, GroupFifo& pixels);

 private:
  bool take_part(BurstFifo& words, GroupFifo& pixels);

  Job job_ = {};
  ByteStream bytes_;
  std::uint32_t row_at_ = 0;  // byte where the row at hand begins
  std::uint32_t rows_left_ = 0;
  int group_ = 0;
  std::uint32_t part_ = 0;  // bytes of the group that came
  std::uint8_t held_[3 * kGroup] = {};
};

}  // namespace hls
}  // namespace millrace
