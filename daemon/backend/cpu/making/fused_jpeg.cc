#include "daemon/backend/cpu/making/fused_jpeg.h"

#include <algorithm>
#include <array>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_source.h"
#include "daemon/backend/cpu/making/reduced_jpeg.h"
#include "kernels/cpu/row_resampler.h"
#include "kernels/cpu/workspace.h"

namespace millrace {
namespace {

// Times some of many calls that are too short to time them all, and takes these for the others.
class SampledTime {
 public:
  template <class Work>
  void time(Work&& work) {
    constexpr int kEvery = 5;
    if (calls_++ % kEvery != 0) return work();
    const Clock::time_point begun = Clock::now();
    work();
    sum_ += Clock::now() - begun;
    ++timed_;
  }
  std::chrono::nanoseconds total() const { return timed_ == 0 ? sum_ : sum_ * calls_ / timed_; }

 private:
  Clock::duration sum_{};
  int calls_ = 0, timed_ = 0;
};

// `complete`: the tensor is. `limit`: of what it is made by.
std::optional<FusedOutcome> outcome_of(kernels::jpeg::Outcome decoded, bool complete, const kernels::TimeLimit& limit,
                                       const SampledTime& transform) {
  if (decoded == kernels::jpeg::Outcome::kLate || (!complete && limit.is_over()))
    return FusedOutcome{deadline_error(), transform.total()};
  if (decoded == kernels::jpeg::Outcome::kNotHere || !complete) return std::nullopt;
  return FusedOutcome{{}, transform.total()};
}

// --- exact ---

// The crop's rows, of which the last four are in memory.
class RowTap final : public kernels::jpeg::PixelConsumer {
 public:
  // `box`: what is decoded of the crop. `memory`: bytes(box, channels).
  RowTap(kernels::RowResampler& resampler, const kernels::Box& box, int channels, std::uint8_t* memory)
      : resampler_(resampler), box_(box), memory_(memory), stride_(stride_of(box, channels)) {
    rows_ = {memory - std::ptrdiff_t{box.left} * channels, stride_, 0, kernels::RowResampler::kRowsHeld - 1};
  }
  static std::size_t bytes(const kernels::Box& box, int channels) {
    return static_cast<std::size_t>(kernels::RowResampler::kRowsHeld * stride_of(box, channels));
  }

  void begin() override { resampler_.begin(); }
  std::uint8_t* place(int y) override { return memory_ + (box_.top + y) % kernels::RowResampler::kRowsHeld * stride_; }
  void take(int y) override {
    const bool four = y % kernels::RowResampler::kRowsHeld == kernels::RowResampler::kRowsHeld - 1;
    if (four || y == box_.height - 1) time_.time([&] { resampler_.take(rows_, box_.top + y + 1); });
  }
  const SampledTime& time() const { return time_; }

 private:
  static std::ptrdiff_t stride_of(const kernels::Box& box, int channels) {
    return (std::ptrdiff_t{box.width} * channels + 127) / 64 * 64;
  }

  kernels::RowResampler& resampler_;
  kernels::Box box_;
  std::uint8_t* memory_;
  std::ptrdiff_t stride_;
  kernels::SamplePlane rows_;
  SampledTime time_;
};

// --- fast ---

// A component's blocks are transformed to so many times fewer samples a side.
using Reductions = std::array<int, 3>;

kernels::PlaneGrid grid_of(int pixels, int sampling, int reduction) {
  const int step = sampling * reduction;
  return {.step = step, .count = (pixels + step - 1) / step, .smoothed = sampling == 2 && reduction == 1};
}

// Chroma of half size is reduced half as much.
Reductions reductions_of(const kernels::jpeg::Header& header, const kernels::ResampleSpec& spec) {
  const int luma = reduction_of(spec);
  const int sampling = std::max(header.component[0].h, header.component[0].v);
  const int chroma = header.components == 1 ? luma : std::max(1, luma / sampling);
  return {luma, chroma, chroma};
}

kernels::PlaneLayout layout_of(const kernels::jpeg::Header& header, const Reductions& reductions) {
  kernels::PlaneLayout layout;
  layout.planes = header.components;
  layout.colour = header.components == 3 ? kernels::PlaneLayout::Colour::kYcc : kernels::PlaneLayout::Colour::kAsIs;
  for (int i = 0; i < header.components; ++i) {
    const int reduction = reductions[static_cast<std::size_t>(i)];
    layout.columns[i] = grid_of(header.size.width, i == 0 ? 1 : header.component[0].h, reduction);
    layout.rows[i] = grid_of(header.size.height, i == 0 ? 1 : header.component[0].v, reduction);
  }
  return layout;
}

class PlaneTap final : public kernels::jpeg::PlaneConsumer {
 public:
  PlaneTap(kernels::PlaneResampler& resampler, const kernels::PlaneResampleSpec& job, kernels::ImageStore& store)
      : resampler_(resampler), job_(job), store_(store) {}

  void begin() override { resampler_.begin(job_); }
  void take(const kernels::SamplePlane* planes, const int* ready) override {
    const auto store_row = [this](int y, std::uint8_t* const* rows) { store_.store_planes(y, rows); };
    time_.time([&] { resampler_.take(planes, ready, kernels::plane_row_sink(store_row)); });
  }
  const SampledTime& time() const { return time_; }

 private:
  kernels::PlaneResampler& resampler_;
  const kernels::PlaneResampleSpec& job_;
  kernels::ImageStore& store_;
  SampledTime time_;
};

int rows_held(const kernels::PlaneResampler& resampler, int planes) {
  int most = 0;
  for (int i = 0; i < planes; ++i) most = std::max(most, resampler.rows_held(i));
  return most;
}

}  // namespace

std::optional<FusedOutcome> make_exact_from_jpeg(const DecodeRequest& request, const FusedOutput& output,
                                                 const FusedTools& tools) {
  const JpegSource source(request);
  const kernels::jpeg::Header* const header = source.header();
  if (header == nullptr) return std::nullopt;
  kernels::ResampleSpec spec = output.resample;
  spec.channels = header->components;
  kernels::ImageStore store(output.table, output.tensor, {spec.window.width, spec.window.height}, spec.channels,
                            output.flip, tools.workspace);
  const kernels::ResamplePlan plan = tools.workspace.plan(spec);
  kernels::RowResampler resampler(plan, tools.workspace, kernels::row_sink(store));
  const kernels::Box needed = kernels::needed_source(plan);
  std::uint8_t* const memory = tools.rows.reserve(RowTap::bytes(needed, spec.channels));
  if (memory == nullptr) return FusedOutcome{memory_error()};
  RowTap tap(resampler, needed, spec.channels, memory);
  const kernels::Box box{output.left + needed.left, output.top + needed.top, needed.width, needed.height};
  const kernels::jpeg::Outcome decoded = source.decode([&](const auto& from, auto... seeking) {
    return tools.decoder.decode_rows(from, box, tap, request.deadline, seeking...);
  });
  return outcome_of(decoded, resampler.is_complete(), tools.workspace.limit(), tap.time());
}

std::optional<FusedOutcome> make_fast_from_jpeg(const DecodeRequest& request, const FusedOutput& output,
                                                const FusedTools& tools) {
  const JpegSource source(request);
  const kernels::jpeg::Header* const header = source.header();
  if (header == nullptr) return std::nullopt;
  const kernels::Box& window = output.resample.window;
  kernels::ImageStore store(output.table, output.tensor, {window.width, window.height}, header->components,
                            kernels::Flip::kNone, tools.workspace);
  const Reductions by = reductions_of(*header, output.resample);
  const kernels::PlaneResampleSpec job{output.resample, output.left, output.top, layout_of(*header, by), output.flip};
  tools.planes.begin(job);
  PlaneTap tap(tools.planes, job, store);
  const kernels::jpeg::PlaneRequest planes{.box = tools.planes.needed(),
                                           .rows_held = rows_held(tools.planes, header->components),
                                           .sides = {8 / by[0], 8 / by[1], 8 / by[2]},
                                           .consumer = tap};
  const kernels::jpeg::Outcome decoded = source.decode([&](const auto& from, auto... seeking) {
    return tools.decoder.decode_planes(from, planes, request.deadline, seeking...);
  });
  return outcome_of(decoded, tools.planes.is_complete(), tools.planes.limit(), tap.time());
}

}  // namespace millrace
