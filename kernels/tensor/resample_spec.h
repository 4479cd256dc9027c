// What a resampling of an 8-bit picture is: Pillow's Image.crop(box).resize(size, filter) on planes without alpha, bit
// by bit. reference.h has it as plain loops. Values and plain functions: thread-safe.
//
// Definition (Pillow, libImaging/Resample.c): half-pixel centres; support widened by the scale when shrinking; weights
// normalised in double, then rounded to 22 fractional bits; two passes, rounded and clamped to 8 bits between them (see
// PassOrder). A side that keeps its size is not filtered. kNearest is Pillow's affine nearest. Four channels are four
// plain ones (CMYK, RGBX): Pillow's resize() of RGBA and LA pictures premultiplies first, which is not done here.
#pragma once

#include <cstdint>

#include "kernels/base/image_view.h"

namespace millrace::kernels {

enum class Filter : std::uint8_t { kNearest, kBox, kBilinear, kHamming, kBicubic, kLanczos };

// Which pass comes first shows in the last bit, because of the rounding between them.
enum class PassOrder : std::uint8_t {
  kAsPillow13,    // rows first where the height loses more than twice as many pixels as the width, else columns first
                  // (Pillow 13, its change #9549)
  kColumnsFirst,  // always columns first (Pillow 3.4 to 12.1; 12.2 and 12.3 too, but for pictures above 100 times as
                  // high as wide)
};

inline constexpr int kMaxSide = 1 << 20;

// What to do: the whole `source` becomes `target`, of which only `window` is computed (a centre crop, or all of it).
struct ResampleSpec {
  int channels = 3;
  Size source;
  Size target;
  Box window;
  Filter filter = Filter::kBilinear;
  PassOrder order = PassOrder::kAsPillow13;
  friend bool operator==(const ResampleSpec&, const ResampleSpec&) = default;
};

// True when channels is 1, 3 or 4, every side is in 1..kMaxSide and the window lies inside the target.
bool is_valid(const ResampleSpec& spec);

// True when `spec` filters both sides, the rows first.
bool filters_rows_first(const ResampleSpec& spec);

}  // namespace millrace::kernels
