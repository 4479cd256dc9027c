#include "hls/host/room.h"

#include <algorithm>

#include "hls/decoder/limits.h"
#include "hls/wire/words.h"
#include "kernels/tensor/axis_weights.h"

namespace millrace::hls {
namespace {

// No output has more source samples: the filter's support on both sides, rounded outwards.
std::uint32_t most_taps(kernels::Filter filter, int in, int out) {
  if (in == out || filter == kernels::Filter::kNearest) return 1;
  const double scale = std::max(1.0, static_cast<double>(in) / out);
  const auto wide = static_cast<std::uint32_t>(2 * kernels::filter_support(filter) * scale) + 2;
  return std::min(wide, static_cast<std::uint32_t>(in));
}

}  // namespace

std::string_view why_no_room(const kernels::ResampleSpec& spec) {
  const std::uint32_t columns = most_taps(spec.filter, spec.source.width, spec.target.width);
  const std::uint32_t rows = most_taps(spec.filter, spec.source.height, spec.target.height);
  if (std::max(columns, rows) > kMostTaps) return "too much larger than its tensor for a card's filters";
  const auto width = static_cast<std::uint32_t>(spec.window.width);
  const auto row = kernels::filters_rows_first(spec) ? static_cast<std::uint32_t>(spec.source.width) : width;
  if (row * rows > kRingPixels || width * (columns + 1) > kAxisWords)
    return "no room in the card's memories for so large a resampling";
  return {};
}

}  // namespace millrace::hls
