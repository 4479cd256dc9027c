#include "kernels/cpu/plane/plane_resample.h"

#include <algorithm>

#include "kernels/cpu/store_kernels.h"

namespace millrace::kernels {
namespace {

std::size_t padded(int samples) {
  return (static_cast<std::size_t>(samples) + 63) / 64 * 64 + kPlaneSlack;
}

// Of full size, without colours to convert.
PlaneLayout plain_layout(Size image) {
  PlaneLayout layout;
  layout.columns[0].count = image.width;
  layout.rows[0].count = image.height;
  return layout;
}

}  // namespace

PlaneResampler::PlaneResampler(Target target) : target_(target), kernels_(plane_kernels(target)) {}

void PlaneResampler::begin(const PlaneResampleSpec& spec, int channels) {
  spec_ = spec;
  const ResampleSpec& resample = spec.resample;
  const AxisSpec across{
      Axis::kColumns,        channels,       resample.source.width, resample.target.width, resample.window.left,
      resample.window.width, resample.filter};
  const AxisSpec down{
      Axis::kRows,    1, resample.source.height, resample.target.height, resample.window.top, resample.window.height,
      resample.filter};
  prepare(columns_, across, spec.left, spec.layout.columns, spec.flip, Packed::kYes);
  prepare(rows_, down, spec.top, spec.layout.rows, Flip::kNone, Packed::kNo);
  next_ = 0;
}

// What was made for an equal side is kept: pictures of one size, planes of one grid.
void PlaneResampler::prepare(Side& side, const AxisSpec& spec, int offset, const PlaneGrid* grids, Flip flip,
                             Packed packed) {
  if (side.weights.start.empty() || side.spec != spec) {
    side.spec = spec;
    side.weights = axis_weights(spec);
  }
  side.others = spec_.layout.planes == 1 || grids[1] == grids[0] ? 0 : 1;
  for (int i = 0; i <= side.others; ++i) {
    const PlaneAxisSpec wanted{spec, offset, grids[i], flip};
    PlaneAxis& axis = side.axes[i];
    if (side.specs[i] == wanted && axis.count() > 0) continue;
    side.specs[i] = wanted;
    make_plane_axis(wanted, side.weights, axis);
    if (packed == Packed::kYes && kernels_.shape != nullptr) pack_windows(*kernels_.shape, axis);
  }
}

Box PlaneResampler::needed() const {
  const PlaneAxis &across = columns(0), &down = rows(0);
  const int x = spec_.layout.columns[0].step, y = spec_.layout.rows[0].step;
  const int left = std::max(across.begin * x, spec_.left), top = std::max(down.begin * y, spec_.top);
  const int right = std::min(across.end * x, spec_.left + spec_.resample.source.width);
  const int bottom = std::min(down.end * y, spec_.top + spec_.resample.source.height);
  return {left, top, right - left, bottom - top};
}

int PlaneResampler::rows_held(int plane) const {
  return rows(plane).taps;
}

// Taps that only pad may lie as far as all of them after the last sample.
void PlaneResampler::reserve(int channels) {
  int samples = 0;
  for (int i = 0; i < spec_.layout.planes; ++i)
    samples = std::max(samples, columns(i).end - columns(i).begin + columns(i).taps);
  const std::size_t row = padded(samples * channels), part = padded(samples);
  const int width = spec_.resample.window.width;
  const std::size_t output = padded(width), pixels = padded(3 * width) + kPlaneSlack;
  const std::size_t bytes = row + pixels + kMostPlanes * (part + output);
  memory_.resize(std::max(memory_.size(), bytes / sizeof(Line)));
  std::uint8_t* at = memory_.front().bytes;
  filtered_ = at;
  pixels_ = at + row;
  at += row + pixels;
  for (int i = 0; i < kMostPlanes; ++i, at += part + output) {
    split_[i] = at;
    finished_[i] = at + part;
  }
}

bool PlaneResampler::has_rows(const int* ready) const {
  for (int i = 0; i < spec_.layout.planes; ++i) {
    if (rows(i).last[static_cast<std::size_t>(next_)] >= ready[i]) return false;
  }
  return true;
}

// Of a row's samples those of all taps count.
bool PlaneResampler::is_too_late() {
  const PlaneAxis& across = columns(0);
  const auto samples = static_cast<std::uint64_t>(across.end - across.begin) * static_cast<std::uint64_t>(rows(0).taps);
  return limit_.is_over_after(samples + static_cast<std::uint64_t>(spec_.resample.window.width));
}

void PlaneResampler::take(const SamplePlane* planes, const int* ready, PlaneRowSink sink) {
  reserve(1);
  for (; !is_complete() && has_rows(ready) && !is_too_late(); ++next_) {
    for (int i = 0; i < spec_.layout.planes; ++i) filter_plane(i, planes[i]);
    finish_row(sink);
  }
}

void PlaneResampler::filter_plane(int plane, const SamplePlane& in) {
  const PlaneAxis &across = columns(plane), &down = rows(plane);
  const std::size_t y = static_cast<std::size_t>(next_), taps = static_cast<std::size_t>(down.taps);
  taps_.resize(taps);
  for (std::size_t t = 0; t < taps; ++t)
    taps_[t] = in.at(across.begin, std::min(down.start[y] + static_cast<int>(t), down.last[y]));
  const int samples = across.end - across.begin;
  filter_taps(down, samples);
  filtered_[samples] = filtered_[samples - 1];
  kernels_.horizontal(across, filtered_, finished_[plane]);
}

bool PlaneResampler::run(const ResampleSpec& resample, Flip flip, const U8View& image, RowSink sink) {
  return run({resample, 0, 0, plain_layout(image.size()), flip}, image, sink);
}

bool PlaneResampler::run(const PlaneResampleSpec& spec, const U8View& image, RowSink sink) {
  const bool together = kernels_.shape == nullptr || kernels_.shape->bytes == sizeof(Line);
  begin(spec, together ? image.channels : 1);
  reserve(image.channels);
  for (; !is_complete() && !is_too_late(); ++next_) {
    filter_pixels(image);
    sink.take(sink.context, next_, pixels_);
  }
  return is_complete();
}

void PlaneResampler::filter_pixels(const U8View& image) {
  const PlaneAxis &across = columns(0), &down = rows(0);
  const std::size_t y = static_cast<std::size_t>(next_), taps = static_cast<std::size_t>(down.taps);
  const int channels = image.channels, pixels = across.end - across.begin;
  const std::ptrdiff_t offset = std::ptrdiff_t{across.begin} * channels;
  taps_.resize(taps);
  for (std::size_t t = 0; t < taps; ++t)
    taps_[t] = image.row(std::min(down.start[y] + static_cast<int>(t), down.last[y])) + offset;
  filter_taps(down, pixels * channels);
  if (across.channels != channels) return filter_pixel_planes(pixels);
  for (int c = 0; c < channels; ++c) filtered_[pixels * channels + c] = filtered_[(pixels - 1) * channels + c];
  kernels_.horizontal(across, filtered_, pixels_);
}

// For targets whose windows are too narrow for pixels.
void PlaneResampler::filter_pixel_planes(int pixels) {
  store_kernels(target_).split(filtered_, pixels, Flip::kNone, split_);
  for (int i = 0; i < kMostPlanes; ++i) {
    split_[i][pixels] = split_[i][pixels - 1];
    kernels_.horizontal(columns(0), split_[i], finished_[i]);
  }
  kernels_.to_pixels(finished_, spec_.resample.window.width, pixels_);
}

// The rows in taps_ to one in filtered_.
void PlaneResampler::filter_taps(const PlaneAxis& down, int samples) {
  const auto vertical = down.bits == kNarrowBits ? kernels_.vertical_narrow : kernels_.vertical;
  const std::int16_t* const weights = &down.weight[static_cast<std::size_t>(next_) * taps_.size()];
  vertical(taps_.data(), weights, down.taps, samples, filtered_);
}

void PlaneResampler::finish_row(PlaneRowSink sink) {
  if (spec_.layout.colour == PlaneLayout::Colour::kYcc) kernels_.to_rgb(finished_, spec_.resample.window.width);
  sink.take(sink.context, next_, finished_);
}

void PlaneResampler::trim(std::size_t bytes) {
  if (memory_.size() * sizeof(Line) > bytes) memory_ = std::vector<Line>();
}

}  // namespace millrace::kernels
