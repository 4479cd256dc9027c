// Pictures as L3 speaks of them: interleaved samples of 8 or 16 bits, which somebody else owns. Samples of 16 bits are in
// the processor's byte order, at even addresses or not. Values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/image_view.h"

namespace millrace::kernels::l3 {

struct SampleView {
  const std::uint8_t* data = nullptr;
  Size size;
  int channels = 0;           // 1 ... 4
  int bytes = 0;              // of a sample: 1 or 2
  std::ptrdiff_t stride = 0;  // bytes between rows

  const std::uint8_t* row(int y) const { return data + y * stride; }
};

struct MutableSampleView {
  std::uint8_t* data = nullptr;
  Size size;
  int channels = 0;
  int bytes = 0;
  std::ptrdiff_t stride = 0;

  std::uint8_t* row(int y) const { return data + y * stride; }
  operator SampleView() const { return {data, size, channels, bytes, stride}; }
};

}  // namespace millrace::kernels::l3
