#include "daemon/backend/cpu/decoders/heif/heic_pixels.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace millrace {
namespace {

// What red, green and blue get of the two chroma samples.
struct Coefficients {
  float red_v = 1.402F, green_u = -0.344136F, green_v = -0.714136F, blue_u = 1.772F;
};

Coefficients coefficients_of(int matrix) {
  float red = 0, blue = 0;
  switch (matrix) {
    case 1:
      red = 0.2126F;
      blue = 0.0722F;
      break;
    case 4:
      red = 0.30F;
      blue = 0.11F;
      break;
    case 5:
    case 6:
      red = 0.299F;
      blue = 0.114F;
      break;
    case 7:
      red = 0.212F;
      blue = 0.087F;
      break;
    case 9:
    case 10:
      red = 0.2627F;
      blue = 0.0593F;
      break;
    default:
      return {};
  }
  const float green = 1 - red - blue;
  return {2 * (1 - red), 2 * blue * (blue - 1) / green, 2 * red * (red - 1) / green, 2 * (1 - blue)};
}

int clipped(int value, int most) {
  return std::clamp(value, 0, most);
}

int rounded(float value, int most) {
  return clipped(static_cast<int>(value + 0.5F), most);
}

int fixed(float coefficient) {
  return static_cast<int>(std::lround(256 * coefficient));
}

template <class Sample>
const Sample* row_of(const HeicPlanes& planes, int plane, int y) {
  return reinterpret_cast<const Sample*>(planes.planes[plane] + static_cast<std::ptrdiff_t>(y) * planes.strides[plane]);
}

// One plane of chroma, for one row of the picture.
template <class Sample>
class ChromaRow {
 public:
  ChromaRow(const HeicPlanes& planes, int plane, int y)
      : planes_(planes), near_(at(plane, y >> planes.chroma_down)), far_(near_) {
    if (planes.chroma_down == 1) far_ = at(plane, (y >> 1) + (y % 2 == 1 ? 1 : -1));
  }

  int operator()(int x) const {
    if (planes_.chroma_right == 0) return near_[column(x)];
    const int here = column(x >> 1);
    if (!planes_.is_smoothed) return near_[here];
    const int beside = column((x >> 1) + (x % 2 == 1 ? 1 : -1));
    if (planes_.chroma_down == 0) return (3 * near_[here] + near_[beside] + 2) >> 2;
    return (9 * near_[here] + 3 * near_[beside] + 3 * far_[here] + far_[beside] + 8) >> 4;
  }

 private:
  int column(int x) const { return clipped(x, planes_.chroma_columns - 1); }
  const Sample* at(int plane, int row) const {
    return row_of<Sample>(planes_, plane, clipped(row, planes_.chroma_rows - 1));
  }

  const HeicPlanes& planes_;
  const Sample *near_, *far_;
};

template <class Sample>
void convert_exactly(const HeicPlanes& planes, int y, int left, int count, std::uint8_t* out) {
  const auto* const luma = row_of<Sample>(planes, 0, y);
  const ChromaRow<Sample> u(planes, 1, y), v(planes, 2, y);
  const Coefficients by = coefficients_of(planes.matrix);
  const int half = 1 << (planes.bits - 1), most = (1 << planes.bits) - 1, shift = planes.bits - 8;
  const auto black = static_cast<float>(16 << shift);
  for (int x = left; x < left + count; ++x, out += 3) {
    auto light = static_cast<float>(luma[x]);
    auto blue = static_cast<float>(u(x) - half);
    auto red = static_cast<float>(v(x) - half);
    if (!planes.is_full_range) {
      light = (light - black) * 1.1689F;
      blue *= 1.1429F;
      red *= 1.1429F;
    }
    out[0] = static_cast<std::uint8_t>(rounded(light + by.red_v * red, most) >> shift);
    out[1] = static_cast<std::uint8_t>(rounded(light + by.green_u * blue + by.green_v * red, most) >> shift);
    out[2] = static_cast<std::uint8_t>(rounded(light + by.blue_u * blue, most) >> shift);
  }
}

template <class Sample>
void convert_in_fixed_point(const HeicPlanes& planes, int y, int left, int count, std::uint8_t* out) {
  const auto* const luma = row_of<Sample>(planes, 0, y);
  const ChromaRow<Sample> u(planes, 1, y), v(planes, 2, y);
  const Coefficients by = coefficients_of(planes.matrix);
  const int red_v = fixed(by.red_v), green_u = fixed(by.green_u), green_v = fixed(by.green_v),
            blue_u = fixed(by.blue_u);
  const int shift = planes.bits - 8;
  for (int x = left; x < left + count; ++x, out += 3) {
    const int light = luma[x] >> shift;
    const int blue = (u(x) >> shift) - 128, red = (v(x) >> shift) - 128;
    out[0] = static_cast<std::uint8_t>(clipped(light + ((red_v * red + 128) >> 8), 255));
    out[1] = static_cast<std::uint8_t>(clipped(light + ((green_u * blue + green_v * red + 128) >> 8), 255));
    out[2] = static_cast<std::uint8_t>(clipped(light + ((blue_u * blue + 128) >> 8), 255));
  }
}

template <class Sample>
void convert(const HeicPlanes& planes, int y, int left, int count, std::uint8_t* out) {
  if (planes.is_grey && planes.bits > 8) {  // as a picture of 16 bits, which Pillow cuts off at 255
    const auto* const from = row_of<Sample>(planes, 0, y) + left;
    std::transform(from, from + count, out,
                   [&](Sample value) { return static_cast<std::uint8_t>(std::min(value << (16 - planes.bits), 255)); });
  } else if (planes.is_grey) {
    const auto* const from = row_of<Sample>(planes, 0, y) + left;
    std::transform(from, from + count, out, [](Sample value) { return static_cast<std::uint8_t>(value); });
  } else if (planes.chroma_down == 1 && planes.is_full_range && !planes.is_smoothed) {
    convert_in_fixed_point<Sample>(planes, y, left, count, out);
  } else {
    convert_exactly<Sample>(planes, y, left, count, out);
  }
}

}  // namespace

bool is_made_rgb(const HeicPlanes& planes) {
  constexpr int kMatrices[] = {1, 2, 4, 5, 6, 7, 9, 10};
  return planes.is_grey || std::find(std::begin(kMatrices), std::end(kMatrices), planes.matrix) != std::end(kMatrices);
}

void convert_heic_row(const HeicPlanes& planes, int y, int left, int count, std::uint8_t* out) {
  if (planes.bits > 8) {
    convert<std::uint16_t>(planes, y, left, count, out);
  } else {
    convert<std::uint8_t>(planes, y, left, count, out);
  }
}

}  // namespace millrace
