// The finished outputs of all values that a pixel can have: 256 a channel, so a table makes the arithmetic exact at the
// price of a look-up. out = ((x / 255) - mean) / std, each step rounded to float32 (as torchvision's ToTensor and
// Normalize), then rounded once to the element type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/base/image_view.h"
#include "kernels/tensor/store_spec.h"

namespace millrace::kernels {

// One entry: what becomes of `pixel` in `colour` (0: red, or grey; 1: green; 2: blue), as bits. Costs divisions.
std::uint32_t element_bits(const StoreSpec& spec, int colour, int pixel);

// The finished outputs of one tensor channel, as bits: whole, and split into bytes (planes[b][x] is byte b of value x)
// for byte shuffles.
struct alignas(64) StorePlane {
  std::uint32_t values[256];
  std::uint8_t planes[4][256];
};

// All tables of one recipe, about 6 KiB. Immutable.
class StoreTable {
 public:
  explicit StoreTable(const StoreSpec& spec);

  const StoreSpec& spec() const { return spec_; }
  int channels() const { return channel_count(spec_.channels); }
  std::size_t element_bytes() const { return bytes_of(spec_.dtype); }
  std::size_t image_bytes(Size size) const {
    const int frames = spec_.patches ? spec_.patches->temporal : 1;
    return static_cast<std::size_t>(size.width) * size.height * channels() * element_bytes() * frames;
  }
  // Tensor channel `c`, in tensor order.
  const StorePlane& plane(int c) const { return planes_[c]; }
  bool planes_are_equal() const { return planes_are_equal_; }

 private:
  StoreSpec spec_;
  std::array<StorePlane, 3> planes_{};
  bool planes_are_equal_ = true;
};

}  // namespace millrace::kernels
