#include "kernels/tensor/reference.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/tensor/axis_weights.h"
#include "kernels/tensor/store_table.h"

namespace millrace::kernels::reference {
namespace {

struct Taps {
  int start = 0;
  std::vector<std::int32_t> weights;
};

// Output sample `i` of a side of `in` samples stretched to `out`.
Taps taps_of(int i, int in, int out, Filter filter) {
  const double scale = static_cast<double>(in) / out;
  const double widened = std::max(scale, 1.0);
  const double support = filter_support(filter) * widened;
  const double centre = (i + 0.5) * scale;
  Taps taps;
  taps.start = std::max(0, static_cast<int>(centre - support + 0.5));
  const int end = std::min(in, static_cast<int>(centre + support + 0.5));
  std::vector<double> weights;
  double sum = 0;
  for (int x = taps.start; x < end; ++x) {
    weights.push_back(filter_value(filter, (x - centre + 0.5) * (1.0 / widened)));
    sum += weights.back();
  }
  for (double weight : weights) {
    if (sum != 0) weight /= sum;
    const double fixed = weight * (1 << kPrecisionBits);
    taps.weights.push_back(static_cast<std::int32_t>(weight < 0 ? fixed - 0.5 : fixed + 0.5));
  }
  return taps;
}

// Filters along one side. `step`: bytes between neighbouring samples of the source picture along that side.
std::uint8_t filtered(const Taps& taps, const std::uint8_t* first, std::ptrdiff_t step) {
  std::int32_t sum = 1 << (kPrecisionBits - 1);
  for (std::size_t t = 0; t < taps.weights.size(); ++t)
    sum += taps.weights[t] * first[(taps.start + static_cast<std::ptrdiff_t>(t)) * step];
  return static_cast<std::uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

struct Picture {
  std::vector<std::uint8_t> bytes;
  MutableU8View view;
  Picture(int width, int height, int channels) : bytes(static_cast<std::size_t>(width) * height * channels) {
    view = {bytes.data(), width, height, channels, std::ptrdiff_t{width} * channels};
  }
};

Picture stretch_columns(const U8View& in, int width, Filter filter) {
  Picture out(width, in.height, in.channels);
  for (int x = 0; x < width; ++x) {
    const Taps taps = taps_of(x, in.width, width, filter);
    for (int y = 0; y < in.height; ++y) {
      for (int c = 0; c < in.channels; ++c) {
        out.view.row(y)[x * in.channels + c] =
            in.width == width ? in.row(y)[x * in.channels + c] : filtered(taps, in.row(y) + c, in.channels);
      }
    }
  }
  return out;
}

Picture stretch_rows(const U8View& in, int height, Filter filter) {
  Picture out(in.width, height, in.channels);
  for (int y = 0; y < height; ++y) {
    const Taps taps = taps_of(y, in.height, height, filter);
    for (int i = 0; i < in.width * in.channels; ++i) {
      out.view.row(y)[i] = in.height == height ? in.row(y)[i] : filtered(taps, in.data + i, in.stride);
    }
  }
  return out;
}

// Sample positions advance by repeated addition, as in Pillow's affine transform.
std::vector<int> nearest_positions(int in, int out) {
  std::vector<int> positions;
  double position = static_cast<double>(in) / out * 0.5;
  for (int i = 0; i < out; ++i, position += static_cast<double>(in) / out)
    positions.push_back(static_cast<int>(position));
  return positions;
}

Picture pick(const U8View& in, Size size) {
  Picture out(size.width, size.height, in.channels);
  const std::vector<int> columns = nearest_positions(in.width, size.width);
  const std::vector<int> rows = nearest_positions(in.height, size.height);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      std::memcpy(out.view.row(y) + x * in.channels, in.row(rows[y]) + columns[x] * in.channels, in.channels);
    }
  }
  return out;
}

// Pillow 13 filters rows first where the height loses more than twice as many pixels as the width does.
bool rows_first(const ResampleSpec& spec) {
  return spec.order == PassOrder::kAsPillow13 && spec.target.height < spec.source.height &&
         spec.source.height - spec.target.height > 2 * (spec.source.width - spec.target.width);
}

Picture resampled(const ResampleSpec& spec, const U8View& source) {
  if (spec.filter == Filter::kNearest) return pick(source, spec.target);
  if (rows_first(spec))
    return stretch_columns(stretch_rows(source, spec.target.height, spec.filter).view, spec.target.width, spec.filter);
  return stretch_rows(stretch_columns(source, spec.target.width, spec.filter).view, spec.target.height, spec.filter);
}

}  // namespace

void resample(const ResampleSpec& spec, const U8View& source, const MutableU8View& out) {
  const Picture whole = resampled(spec, source);
  const U8View window = U8View(whole.view).crop(spec.window);
  for (int y = 0; y < window.height; ++y)
    std::memcpy(out.row(y), window.row(y), static_cast<std::size_t>(window.width) * window.channels);
}

namespace {

// Where element (channel, frame, y, x) of an image is, counted in elements.
std::size_t place_in_patches(const Patches& patches, Size size, int channels, int channel, int frame, int y, int x) {
  const int across = size.width / patches.width;
  const int column = x / patches.width, row = y / patches.height;
  const int group = row / patches.merge * (across / patches.merge) + column / patches.merge;
  const int in_group = row % patches.merge * patches.merge + column % patches.merge;
  const std::size_t patch = static_cast<std::size_t>(group) * patches.merge * patches.merge + in_group;
  const std::size_t plane = (patch * channels + channel) * patches.temporal + frame;
  return (plane * patches.height + y % patches.height) * patches.width + x % patches.width;
}

std::vector<std::size_t> places(const StoreSpec& spec, Size size, int channels, int channel, int y, int x) {
  const std::size_t width = size.width, height = size.height;
  if (!spec.patches && spec.layout == Layout::kNchw) return {(channel * height + y) * width + x};
  if (!spec.patches) return {(y * width + x) * channels + channel};
  std::vector<std::size_t> found;
  for (int frame = 0; frame < spec.patches->temporal; ++frame)
    found.push_back(place_in_patches(*spec.patches, size, channels, channel, frame, y, x));
  return found;
}

}  // namespace

void store(const StoreSpec& spec, const U8View& picture, Flip flip, std::span<std::byte> tensor) {
  const std::size_t element = bytes_of(spec.dtype);
  const int channels = channel_count(spec.channels);
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      const std::uint8_t* pixel =
          picture.row(y) + (flip == Flip::kHorizontal ? picture.width - 1 - x : x) * picture.channels;
      for (int c = 0; c < channels; ++c) {
        const int colour = colour_of(spec.channels, c);
        const bool to_grey = channels == 1 && picture.channels == 3;
        const int value = to_grey ? luma(pixel[0], pixel[1], pixel[2]) : pixel[picture.channels == 1 ? 0 : colour];
        const std::uint32_t bits = element_bits(spec, colour, value);
        for (const std::size_t at : places(spec, picture.size(), channels, c, y, x)) {
          for (std::size_t b = 0; b < element; ++b) tensor[at * element + b] = static_cast<std::byte>(bits >> (8 * b));
        }
      }
    }
  }
}

}  // namespace millrace::kernels::reference
