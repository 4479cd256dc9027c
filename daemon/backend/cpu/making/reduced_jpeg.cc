#include "daemon/backend/cpu/making/reduced_jpeg.h"

#include "kernels/cpu/workspace.h"

namespace millrace {
namespace {

int divide_up(int value, int by) {
  return (value + by - 1) / by;
}

kernels::PlaneLayout layout_of(kernels::Size image, int by) {
  kernels::PlaneLayout layout;
  layout.columns[0] = {.step = by, .count = divide_up(image.width, by)};
  layout.rows[0] = {.step = by, .count = divide_up(image.height, by)};
  return layout;
}

// Of the samples, those that pixels of `box` went into.
kernels::Box samples_of(const kernels::Box& box, int by) {
  const int left = box.left / by, top = box.top / by;
  return {left, top, divide_up(box.left + box.width, by) - left, divide_up(box.top + box.height, by) - top};
}

// Then the verdict is the picture's, though `box` may pick out less of it.
bool shows_all(const DecodeRequest& request, const FusedOutput& output) {
  const kernels::ResampleSpec& spec = output.resample;
  return spec.source == request.stored && spec.window == kernels::Box{0, 0, spec.target.width, spec.target.height};
}

}  // namespace

int reduction_of(const kernels::ResampleSpec& resample) {
  // Samples that an output takes a side. What lies across a filter's edges is rounded, which shows where these are steep.
  const bool is_box = resample.filter == kernels::Filter::kBox;
  const int margin = is_box ? 4 : resample.filter == kernels::Filter::kHamming ? 3 : 2;
  int reduction = 1;
  for (const int by : {2, 4, 8}) {
    const int least = margin * by;
    const bool shrinks = resample.source.width >= least * resample.target.width &&
                         resample.source.height >= least * resample.target.height;
    if (shrinks) reduction = by;
  }
  return reduction;
}

std::optional<FusedOutcome> make_reduced_from_jpeg(const DecodeRequest& request, const FusedOutput& output,
                                                   const ReducedTools& tools) {
  const int by = reduction_of(output.resample);
  if (by == 1) return std::nullopt;
  kernels::PlaneResampleSpec job{output.resample, output.left, output.top, layout_of(request.stored, by), output.flip};
  tools.planes.begin(job);
  DecodeRequest reduced = request;
  reduced.reduction = by;
  reduced.box = shows_all(request, output) ? kernels::Box{0, 0, job.layout.columns[0].count, job.layout.rows[0].count}
                                           : samples_of(tools.planes.needed(), by);
  const Result<kernels::U8View> part = tools.libraries.decode(ImageFormat::kJpeg, reduced, tools.rows);
  if (!part) return FusedOutcome{part.error()};
  const Clock::time_point decoded = Clock::now();
  if (request.deadline.is_over(decoded)) return FusedOutcome{deadline_error()};
  const kernels::Box& window = output.resample.window;
  kernels::ImageStore store(output.table, output.tensor, {window.width, window.height}, part->channels,
                            kernels::Flip::kNone, tools.workspace);
  job.resample.channels = part->channels;
  const kernels::PlaneGrid &columns = job.layout.columns[0], &rows = job.layout.rows[0];
  const std::ptrdiff_t offset = reduced.box.top * part->stride + std::ptrdiff_t{reduced.box.left} * part->channels;
  const bool complete = tools.planes.run(
      job, {part->data - offset, columns.count, rows.count, part->channels, part->stride}, kernels::row_sink(store));
  const auto took = Clock::now() - decoded;
  return complete ? FusedOutcome{{}, took} : FusedOutcome{deadline_error(), took};
}

}  // namespace millrace
