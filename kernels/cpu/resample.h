// Antialiased resampling of 8-bit pictures as kernels/tensor/resample_spec.h defines it: bit-equal to Pillow's
// Image.crop(box).resize(size, filter) on planes without alpha.
//
//   Workspace workspace;  // one a thread
//   const ResamplePlan plan = workspace.plan({.channels = 3,
//                                             .source = {520, 520},
//                                             .target = {224, 224},
//                                             .window = whole({224, 224})});
//   resample(plan, view.crop(box), workspace, [&](int y, const std::uint8_t* row) { ... });
//
// Rows are handed over one after the other, so that each can be stored straight into a tensor: no resampled picture
// exists in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "kernels/base/image_view.h"
#include "kernels/tensor/resample_spec.h"

namespace millrace::kernels {

class Workspace;
struct AxisTable;

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
// needed_source(plan); vector targets may also load, without using them, up to 64 bytes before and after that part of
// a row, so a buffer that holds no more than it needs 64 bytes of slack at both ends. Allocates only when the workspace
// has not yet seen such sizes. Cost: see README.md. false: the workspace's time limit was over, and rows are missing.
bool resample_rows(const ResamplePlan& plan, const U8View& source, Workspace& workspace, RowSink sink);

// A sink for any callable (int y, const std::uint8_t* row), to which it keeps a reference.
template <class Callable>
RowSink row_sink(Callable& callable) {
  const auto take = [](void* context, int y, const std::uint8_t* row) { (*static_cast<Callable*>(context))(y, row); };
  return {const_cast<std::remove_const_t<Callable>*>(std::addressof(callable)), take};
}

// The same into such a callable.
template <class Sink>
bool resample(const ResamplePlan& plan, const U8View& source, Workspace& workspace, Sink&& sink) {
  return resample_rows(plan, source, workspace, row_sink(sink));
}

// Into a picture of the window's size. REQUIRES: `out` does not overlap `source`.
bool resample_image(const ResamplePlan& plan, const U8View& source, Workspace& workspace, const MutableU8View& out);

}  // namespace millrace::kernels
