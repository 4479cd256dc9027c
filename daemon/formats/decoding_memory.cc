#include "daemon/formats/decoding_memory.h"

#include <algorithm>

#include "daemon/formats/format_table.h"

namespace millrace {
namespace {

constexpr std::uint64_t kMargin =
    16;  // rows beside a crop that decoders fill: one for others, what upsampling looks at
constexpr std::uint64_t kTurnedBytes = 3, kRingBytes = 3, kAugmentedBytes = 9, kPaddedBytes = 3,
                        kKeptBytes = 3;  // a pixel

// A pixel as the decoders hold it.
std::uint64_t pixel_bytes(ImageFormat format) {
  return format_of(format).features.cmyk ? 4 : 3;
}

std::uint64_t side(std::int32_t value) {
  return static_cast<std::uint64_t>(std::max(value, 0));
}

// The longest filter (lanczos) looks at six rows of the crop for each of the output when it does not shrink.
std::uint64_t rows_resampled_at_once(const SampleGeometry& geometry) {
  const std::uint64_t rows = side(geometry.crop.height);
  const std::uint64_t out = std::max(geometry.resized.height, 1U);
  return std::min(rows, (rows + out - 1) / out * 6 + 8);
}

}  // namespace

DecodingMemory decoding_memory(const SourceInfo& info, const SampleGeometry& geometry) {
  const std::uint64_t wide = side(geometry.crop.width), high = side(geometry.crop.height);
  const bool on_its_side = info.orientation >= 5;
  const std::uint64_t rows =
      std::min<std::uint64_t>((on_its_side ? wide : high) + kMargin, info.stored.height + kMargin);
  const Bytes decoded{info.stored.width * rows * pixel_bytes(info.format)};
  const Bytes turned{info.orientation == 1 ? 0 : wide * high * kTurnedBytes};
  Bytes ring, augmented;  // of the view that takes most: they are made one after the other
  for (const SampleGeometry& view : views_of(geometry)) {
    const std::uint64_t row = std::max(side(view.crop.width), side(view.window.width));
    ring = std::max(ring, Bytes{rows_resampled_at_once(view) * row * kRingBytes});
    // The picture that steps work on, two times its planes, and those of what they add up; a recipe that only erases
    // takes none of it.
    const std::uint64_t out = std::uint64_t{view.output().width} * view.output().height;
    std::uint64_t beside = view.draws ? out * (kAugmentedBytes + view.kept_pictures * kKeptBytes) : 0;
    if (view.canvas) beside += (out + side(view.window.width) * side(view.window.height)) * kPaddedBytes;
    augmented = std::max(augmented, Bytes{beside});
  }
  const Bytes pixels = decoded + turned + augmented;
  return {info.codec.needed + pixels, std::max(info.codec.needed, info.codec.at_most) + pixels + ring};
}

}  // namespace millrace
