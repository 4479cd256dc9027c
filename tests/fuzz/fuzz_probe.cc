// Any bytes as an image file: the probe must answer, within the limits, and the same again.
#include <cstddef>
#include <cstdint>
#include <span>

#include "daemon/formats/format_table.h"
#include "daemon/formats/probe.h"

namespace millrace {

// Whether a file of a format that may have `most` may have `has`.
bool are_of(const ImageFeatures& most, const ImageFeatures& has) {
  return (most.alpha || !has.alpha) && (most.cmyk || !has.cmyk) && (most.deep || !has.deep) &&
         (most.passes || !has.passes) && (most.animation || !has.animation);
}

}  // namespace millrace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  const ByteView bytes = std::as_bytes(std::span(data, size));
  const SampleLimits limits{.pixels = 1'000'000, .side = 10'000};
  const Result<SourceInfo> info = probe_image(bytes, limits, UseOrientation::kYes);
  const Result<SourceInfo> upright = probe_image(bytes, limits, UseOrientation::kNo);
  MILLRACE_CHECK(info.has_value() == upright.has_value());
  if (!info) {
    MILLRACE_CHECK(info.error().code == Code::kInvalid || info.error().code == Code::kUnsupported);
    MILLRACE_CHECK(!info.error().message.empty());
    return 0;
  }
  const Size stored = info->stored;
  MILLRACE_CHECK(stored == upright->stored && upright->orientation == 1);
  MILLRACE_CHECK(stored.width >= 1 && stored.height >= 1 && stored.width <= limits.side &&
                 stored.height <= limits.side);
  MILLRACE_CHECK(std::uint64_t{stored.width} * stored.height <= limits.pixels);
  MILLRACE_CHECK(info->has == upright->has && are_of(format_of(info->format).features, info->has));
  MILLRACE_CHECK(info->orientation >= 1 && info->orientation <= 8);
  return 0;
}
