// Words of the commands to the memory of a stage, ahead of what the stage does with them: up to two tables, one behind
// the other. Thread-bound(the kernel's caller).
#pragma once

#include "hls/base/memory.h"
#include "hls/decoder/jpeg/huffman.h"

namespace millrace {
namespace hls {

struct UnitRange {
  std::uint32_t begin, count;
};

class TableFeed {
 public:
  void start(const UnitRange& first, const UnitRange& second) {
    ranges_[0] = first;
    ranges_[1] = second;
  }
  bool step(const ReadPort& commands, SetupFifo& setup) {
    bool moved = false;
    for (int i = 0; i < 2; ++i) {
      while (ranges_[i].count > 0 && !setup.full()) {
#pragma HLS PIPELINE II = 1
        setup.write(commands.read(ranges_[i].begin));
        ++ranges_[i].begin;
        --ranges_[i].count;
        moved = true;
      }
      if (ranges_[i].count > 0) return moved;
    }
    return moved;
  }

 private:
  UnitRange ranges_[2] = {};
};

inline UnitRange axis_units(std::uint32_t begin, std::uint32_t outputs, std::uint32_t taps) {
  return {begin, (outputs * (taps + 1) * 4 + kUnit - 1) / kUnit};
}

}  // namespace hls
}  // namespace millrace
