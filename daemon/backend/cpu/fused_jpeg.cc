#include "daemon/backend/cpu/fused_jpeg.h"

#include <algorithm>
#include <array>

namespace millrace {
namespace {

// A component's blocks are transformed to so many times fewer samples a side.
using Reductions = std::array<int, 3>;

kernels::PlaneGrid grid_of(int pixels, int sampling, int reduction) {
  const int step = sampling * reduction;
  return {.step = step, .count = (pixels + step - 1) / step, .smoothed = sampling == 2 && reduction == 1};
}

// A picture that is shrunk kMargin times as much as its blocks are is far from showing it. Chroma of half size is
// reduced half as much.
Reductions reductions_of(const kernels::jpeg::Header& header, const kernels::ResampleSpec& spec) {
  constexpr int kMargin = 2;
  int luma = 1;
  for (const int by : {2, 4, 8}) {
    const int least = kMargin * by;
    const bool shrinks =
        spec.source.width >= least * spec.target.width && spec.source.height >= least * spec.target.height;
    if (shrinks) luma = by;
  }
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

// From the decoder to the resampler, and from there to the store.
class Tap final : public kernels::jpeg::PlaneConsumer {
 public:
  Tap(kernels::PlaneResampler& resampler, const kernels::PlaneResampleSpec& job, kernels::ImageStore& store)
      : resampler_(resampler), job_(job), store_(store) {}

  void begin() override { resampler_.begin(job_); }
  void take(const kernels::SamplePlane* planes, const int* ready) override {
    const auto store_row = [this](int y, std::uint8_t* const* rows) { store_.store_planes(y, rows); };
    resampler_.take(planes, ready, kernels::plane_row_sink(store_row));
  }

 private:
  kernels::PlaneResampler& resampler_;
  const kernels::PlaneResampleSpec& job_;
  kernels::ImageStore& store_;
};

int rows_held(const kernels::PlaneResampler& resampler, int planes) {
  int most = 0;
  for (int i = 0; i < planes; ++i) most = std::max(most, resampler.rows_held(i));
  return most;
}

}  // namespace

std::optional<Result<void>> make_from_jpeg(const DecodeRequest& request, const FusedOutput& output,
                                           const FusedTools& tools) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(request.bytes_untrusted.data());
  const auto header = kernels::jpeg::read_header({bytes, request.bytes_untrusted.size()});
  if (!header || header->size != request.stored) return std::nullopt;
  const kernels::Box& window = output.resample.window;
  kernels::ImageStore store(output.table, output.tensor, {window.width, window.height}, header->components,
                            kernels::Flip::kNone, tools.workspace);
  const Reductions by = reductions_of(*header, output.resample);
  const kernels::PlaneResampleSpec job{output.resample, output.left, output.top, layout_of(*header, by), output.flip};
  tools.resampler.begin(job);
  Tap tap(tools.resampler, job, store);
  const kernels::jpeg::PlaneRequest planes{.box = tools.resampler.needed(),
                                           .rows_held = rows_held(tools.resampler, header->components),
                                           .sides = {8 / by[0], 8 / by[1], 8 / by[2]},
                                           .consumer = tap};
  const kernels::jpeg::Outcome outcome = with_index(request.index, [&](auto* seeking) {
    return tools.decoder.decode_planes(*header, planes, request.deadline, seeking);
  });
  switch (outcome) {
    case kernels::jpeg::Outcome::kDecoded:
      if (tools.resampler.is_complete()) return Result<void>();
      break;
    case kernels::jpeg::Outcome::kLate:
      return Result<void>(deadline_error());
    case kernels::jpeg::Outcome::kNotHere:
      break;
  }
  return std::nullopt;
}

}  // namespace millrace
