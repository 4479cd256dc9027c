#include "daemon/place/expected_cost.h"

#include <algorithm>

#include "daemon/formats/format_table.h"

namespace millrace {
namespace {

// Of decoding that goes from the file's first byte to the crop's last row; 1024ths. Crops of turned pictures count by
// their rows after turning: near enough to order by.
std::uint64_t part_above_end(const Box& crop, Size size) {
  const std::int64_t end = std::int64_t{crop.top} + crop.height;
  const std::int64_t rows = std::max<std::int64_t>(size.height, 1);
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(end, 0, rows) * 1024 / rows);
}

// Of each pixel of the output: resampled and stored. What a pixel of the crop costs meanwhile is the format's.
constexpr std::uint64_t kOutputPixelPs = 2'000;

// Of a tensor that is kept: it is copied.
constexpr struct { std::uint64_t picture_ns = 2'000, byte_ps = 100; } kCopy;

}  // namespace

std::uint64_t expected_cost(const EncodedImage& image, const SampleGeometry& geometry) {
  const Size size = oriented_size(image.info);
  const std::uint64_t pixels = std::uint64_t{size.width} * size.height;
  const auto crop =
      static_cast<std::uint64_t>(std::max<std::int64_t>(std::int64_t{geometry.crop.width} * geometry.crop.height, 0));
  std::uint64_t output_ps = 0;
  for (const SampleGeometry& view : views_of(geometry)) {
    const Size output = view.output();
    output_ps += std::uint64_t{output.width} * output.height * (kOutputPixelPs + view.step_pixel_ps);
  }
  const bool is_copied = image.kept && image.kept->kind == CachedKind::kTensor;
  if (is_copied) return kCopy.picture_ns + image.kept->bytes->size() * kCopy.byte_ps / 1000;
  const bool is_packed = image.kept && image.kept->kind == CachedKind::kPacked;
  const DecodingCost& cost = format_of(is_packed ? ImageFormat::kPacked : image.info.format).cost;
  const std::uint64_t passes = is_packed || image.passes < 2 ? 0 : image.passes;
  const bool to_crop_end = cost.part == DecodingCost::Part::kToCropEnd && passes == 0;
  const std::uint64_t bytes =
      to_crop_end ? image.bytes.size() * part_above_end(geometry.crop, size) / 1024 : image.bytes.size();
  return cost.picture_ns + bytes * cost.byte_ns +
         (pixels * (cost.pixel_ps + passes * cost.pass_pixel_ps) + crop * cost.crop_pixel_ps + output_ps) / 1000;
}

}  // namespace millrace
