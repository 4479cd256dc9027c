// Resampling (resample.h) of a picture whose rows come one after the other, from a decoder for example: output rows are
// made as soon as their source rows are there, of which only a few have to be in memory.
//
//   RowResampler resampler(plan, workspace, row_sink(store));
//   for (int y = needed.top; y < needed.top + needed.height; ++y) {
//     ... the source's row y into row y % kRowsHeld of some buffer ...
//     resampler.take(rows, y + 1);
//   }
//
// Thread-bound(the workspace's).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/plane/sample_plane.h"
#include "kernels/cpu/resample.h"

namespace millrace::kernels {

class TimeLimit;
struct RowKernels;

class RowResampler {
 public:
  // Rows of the source that have to be in memory when take() is called: the last ones before `ready`, and all that came
  // since the last call.
  static constexpr int kRowsHeld = 4;

  // Uses the workspace's ring as long as it lives. REQUIRES: `workspace` made the plan, and no
  // other since; the filter is not kNearest, or the target has the source's size.
  RowResampler(const ResamplePlan& plan, Workspace& workspace, RowSink sink);

  // From the first row again.
  void begin();

  // Makes the output rows for which the source's rows before `ready` suffice. `rows` counts bytes, from the source's
  // first pixel on; read as resample_rows() reads a picture. Stops when the workspace's time limit is over.
  void take(const SamplePlane& rows, int ready);

  bool is_complete() const { return y_ == plan_.spec.window.height; }

 private:
  enum class Passes : std::uint8_t { kNone, kColumnsFirst, kRowsFirst };

  std::uint8_t* slot(int quad) const;
  bool fill_quads(const SamplePlane& rows, int first, int end, int ready);
  std::uint64_t quad_samples() const;
  void fill_quad(const SamplePlane& rows, int quad);
  void copy_rows(const SamplePlane& rows, int ready);
  void filter_row();
  void finish_four();

  ResamplePlan plan_;
  const RowKernels& kernels_;
  TimeLimit& limit_;
  std::vector<const std::uint8_t*>& quads_;
  RowSink sink_;
  Passes passes_;
  bool keeps_width_;
  int samples_;             // of a row between the passes
  std::ptrdiff_t offset_;   // of such a row's first in the source's rows; columns first, where the width changes: none
  std::size_t pitch_;       // of filtered_
  std::uint8_t* filtered_;  // kRowsFirst: four rows of the source's width
  std::uint8_t* out_;       // four output rows
  std::uint8_t* ring_;
  int y_ = 0;     // the next output row
  int quad_ = 0;  // the next quad
};

}  // namespace millrace::kernels
