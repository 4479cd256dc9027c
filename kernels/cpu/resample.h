// Antialiased resampling of 8-bit pictures, bit-equal to Pillow's Image.crop(box).resize(size, filter) on planes
// without alpha.
//
//   Workspace workspace;                                              // one a thread
//   const ResamplePlan plan = workspace.plan({.channels = 3, .source = {520, 520}, .target = {224, 224}, .window =
//   whole({224, 224})}); resample(plan, view.crop(box), workspace, [&](int y, const std::uint8_t* row) { ... });
//
// Definition (Pillow, libImaging/Resample.c): half-pixel centres; support widened by the scale when shrinking; weights
// normalised in double, then rounded to 22 fractional bits; two passes, rounded and clamped to 8 bits between them (see
// PassOrder). A side that keeps its size is not filtered. kNearest is Pillow's affine nearest. Four channels are four
// plain ones (CMYK, RGBX): Pillow's resize() of RGBA and LA pictures premultiplies first, which is not done here.
//
// Rows are handed over one after the other, so that each can be stored straight into a tensor: no resampled picture
// exists in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "kernels/base/image_view.h"

namespace millrace::kernels {

class Workspace;
struct AxisTable;

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

constexpr Box whole(Size size) {
  return {0, 0, size.width, size.height};
}

// True when channels is 1, 3 or 4, every side is in 1..kMaxSide and the window lies inside the target.
bool is_valid(const ResampleSpec& spec);

// True when `spec` filters both sides, the rows first.
bool filters_rows_first(const ResampleSpec& spec);

// The coefficient tables for one spec. Made by Workspace::plan(), which owns the tables; usable until the next call of
// plan() there.
struct ResamplePlan {
  ResampleSpec spec;
  const AxisTable* columns = nullptr;
  const AxisTable* rows = nullptr;
};

// The part of the source that the window depends on: a decoder needs to fill only that.
Box needed_source(const ResamplePlan& plan);

// Takes finished rows: `y` counts 0..window.height-1 upwards, `row` has window.width * channels bytes and is valid
// during the call only.
struct RowSink {
  void* context;
  void (*take)(void* context, int y, const std::uint8_t* row);
};

// REQUIRES: `source` has the plan's source size and channels; `workspace` made the plan. Uses `source` only within
// needed_source(plan); vector targets may also load, without using them, up to 64 bytes before and behind that part of
// a row, so a buffer that holds no more than it needs 64 bytes of slack at both ends. Allocates only when the workspace
// has not yet seen such sizes. Cost: see README.md.
void resample_rows(const ResamplePlan& plan, const U8View& source, Workspace& workspace, RowSink sink);

// A sink for any callable (int y, const std::uint8_t* row), to which it keeps a reference.
template <class Callable>
RowSink row_sink(Callable& callable) {
  const auto take = [](void* context, int y, const std::uint8_t* row) { (*static_cast<Callable*>(context))(y, row); };
  return {const_cast<std::remove_const_t<Callable>*>(std::addressof(callable)), take};
}

// The same into such a callable.
template <class Sink>
void resample(const ResamplePlan& plan, const U8View& source, Workspace& workspace, Sink&& sink) {
  resample_rows(plan, source, workspace, row_sink(sink));
}

// Into a picture of the window's size. REQUIRES: `out` does not overlap `source`.
void resample_image(const ResamplePlan& plan, const U8View& source, Workspace& workspace, const MutableU8View& out);

namespace reference {  // obviously right, slow: the definition as plain loops over whole pictures; it allocates
void resample(const ResampleSpec& spec, const U8View& source, const MutableU8View& out);
}

}  // namespace millrace::kernels
