// Luma and chroma to red, green and blue, bit-equal to libjpeg-turbo's fixed point. Grey pictures pass as they are, in
// the first plane. A group a clock. Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/raster.h"

namespace millrace {
namespace hls {

class Colour {
 public:
  void start(const Job& job) { is_grey_ = job.components == 1; }
  bool step(GroupFifo& groups, GroupFifo& pixels);

 private:
  bool is_grey_ = false;
};

}  // namespace hls
}  // namespace millrace
