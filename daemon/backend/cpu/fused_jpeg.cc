#include "daemon/backend/cpu/fused_jpeg.h"

#include <algorithm>

namespace millrace {
namespace {

kernels::PlaneGrid grid_of(int pixels, int step) {
  return {.step = step, .count = (pixels + step - 1) / step, .smoothed = step == 2};
}

kernels::PlaneLayout layout_of(const kernels::jpeg::Header& header) {
  kernels::PlaneLayout layout;
  layout.planes = header.components;
  layout.colour = header.components == 3 ? kernels::PlaneLayout::Colour::kYcc : kernels::PlaneLayout::Colour::kAsIs;
  for (int i = 0; i < header.components; ++i) {
    layout.columns[i] = grid_of(header.size.width, i == 0 ? 1 : header.component[0].h);
    layout.rows[i] = grid_of(header.size.height, i == 0 ? 1 : header.component[0].v);
  }
  return layout;
}

// From the decoder to the resampler, and from there to the store.
class Tap final : public kernels::jpeg::PlaneConsumer {
 public:
  Tap(kernels::PlaneResampler& resampler, kernels::ImageStore& store) : resampler_(resampler), store_(store) {}

  void take(const kernels::SamplePlane* planes, const int* ready) override {
    const auto store_row = [this](int y, std::uint8_t* const* rows) { store_.store_planes(y, rows); };
    resampler_.take(planes, ready, kernels::plane_row_sink(store_row));
  }

 private:
  kernels::PlaneResampler& resampler_;
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
  tools.resampler.begin({output.resample, output.left, output.top, layout_of(*header), output.flip});
  Tap tap(tools.resampler, store);
  const kernels::jpeg::PlaneRequest planes{tools.resampler.needed(), rows_held(tools.resampler, header->components),
                                           tap};
  switch (tools.decoder.decode_planes(*header, planes, request.deadline)) {
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
