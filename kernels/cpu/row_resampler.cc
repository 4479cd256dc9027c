#include "kernels/cpu/row_resampler.h"

#include <algorithm>

#include "kernels/cpu/rows/row_kernels.h"
#include "kernels/cpu/workspace.h"

namespace millrace::kernels {
namespace {

int out_samples(const ResamplePlan& plan) {
  return plan.spec.window.width * plan.spec.channels;
}

std::size_t out_pitch(const ResamplePlan& plan) {
  return row_bytes(out_samples(plan) + 16);
}

// Room for a whole source row, and for what the vertical pass writes after it.
std::size_t filtered_pitch(const ResamplePlan& plan) {
  return row_bytes(plan.spec.source.width * plan.spec.channels) + 64;
}

}  // namespace

RowResampler::RowResampler(const ResamplePlan& plan, Workspace& workspace, RowSink sink)
    : plan_(plan),
      kernels_(row_kernels(workspace.target())),
      limit_(workspace.limit()),
      quads_(workspace.quads()),
      sink_(sink) {
  const ResampleSpec& spec = plan.spec;
  passes_ = filters_rows_first(spec) ? Passes::kRowsFirst : Passes::kColumnsFirst;
  if (spec.source == spec.target) passes_ = Passes::kNone;
  keeps_width_ = spec.source.width == spec.target.width;
  const Box needed = needed_source(plan);
  const bool as_they_are = passes_ == Passes::kRowsFirst || keeps_width_;
  samples_ = passes_ == Passes::kRowsFirst ? needed.width * spec.channels : out_samples(plan);
  offset_ = as_they_are ? std::ptrdiff_t{needed.left} * spec.channels : 0;
  pitch_ = passes_ == Passes::kRowsFirst ? filtered_pitch(plan) : 0;
  const std::size_t rows = kQuadRows * (pitch_ + out_pitch(plan));
  filtered_ = workspace.ring(rows + plan.rows->quads * quad_bytes(samples_));
  out_ = filtered_ + kQuadRows * pitch_;
  ring_ = filtered_ + rows;
  quads_.resize(plan.rows->quads);
}

void RowResampler::begin() {
  y_ = quad_ = 0;
}

void RowResampler::take(const SamplePlane& rows, int ready) {
  if (passes_ == Passes::kNone) return copy_rows(rows, ready);
  for (; !is_complete(); ++y_) {
    const auto [pair, pairs] = plan_.rows->row_steps[y_];
    const int first = pair / 2, end = (pair + pairs - 1) / 2 + 1;
    if (!fill_quads(rows, first, end, ready)) return;
    for (int quad = first; quad < end; ++quad) quads_[quad - first] = slot(quad);
    if (limit_.is_over_after(static_cast<std::uint64_t>(samples_))) return;
    filter_row();
  }
}

void RowResampler::copy_rows(const SamplePlane& rows, int ready) {
  const Box& window = plan_.spec.window;
  for (; !is_complete() && window.top + y_ < ready; ++y_) {
    if (limit_.is_over_after(static_cast<std::uint64_t>(window.width) * plan_.spec.channels)) return;
    sink_.take(sink_.context, y_, rows.at(window.left * plan_.spec.channels, window.top + y_));
  }
}

// A ring of just as many quads as one output row needs.
std::uint8_t* RowResampler::slot(int quad) const {
  return ring_ + (quad % plan_.rows->quads) * quad_bytes(samples_);
}

// False: there are too few rows for all of them, or too little time.
bool RowResampler::fill_quads(const SamplePlane& rows, int first, int end, int ready) {
  const AxisTable& table = *plan_.rows;
  const int all = table.weights.start.back() + table.weights.taps;
  for (quad_ = std::max(quad_, first); quad_ < end; ++quad_) {
    if (std::min(table.origin + (quad_ + 1) * kQuadRows, all) > ready) return false;
    if (limit_.is_over_after(quad_samples())) return false;
    fill_quad(rows, quad_);
  }
  return true;
}

// Of the rows that make one.
std::uint64_t RowResampler::quad_samples() const {
  const auto row = std::max(samples_, plan_.spec.source.width * plan_.spec.channels);
  return static_cast<std::uint64_t>(row) * kQuadRows;
}

// Below the last row that is needed that row stands in, with weights of 0.
void RowResampler::fill_quad(const SamplePlane& rows, int quad) {
  const AxisTable& table = *plan_.rows;
  const int last = table.weights.start.back() + table.weights.taps - 1;
  const std::uint8_t* in[kQuadRows];
  for (int r = 0; r < kQuadRows; ++r) in[r] = rows.at(0, std::min(table.origin + quad * kQuadRows + r, last)) + offset_;
  const bool as_they_are = passes_ == Passes::kRowsFirst || keeps_width_;
  as_they_are ? kernels_.interleave(in, samples_, slot(quad)) : kernels_.horizontal(*plan_.columns, in, slot(quad));
}

void RowResampler::filter_row() {
  const bool last = passes_ == Passes::kColumnsFirst;
  std::uint8_t* const to = last ? out_ : filtered_ + (y_ % kQuadRows) * pitch_ + offset_;
  kernels_.vertical(*plan_.rows, y_, quads_.data(), samples_, to);
  if (last) return sink_.take(sink_.context, y_, out_);
  if (y_ % kQuadRows == kQuadRows - 1 || y_ == plan_.spec.window.height - 1) finish_four();
}

// Filtered rows of the source's width gather in fours; each four goes through the horizontal pass and out.
void RowResampler::finish_four() {
  const std::uint8_t* in[kQuadRows];
  std::uint8_t* out[kQuadRows];
  for (int r = 0; r < kQuadRows; ++r) in[r] = filtered_ + r * pitch_, out[r] = out_ + r * out_pitch(plan_);
  kernels_.horizontal_rows(*plan_.columns, in, out);
  const int first = y_ - y_ % kQuadRows;
  for (int r = 0; first + r <= y_; ++r) sink_.take(sink_.context, first + r, out[r]);
}

}  // namespace millrace::kernels
