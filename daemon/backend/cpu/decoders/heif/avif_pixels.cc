#include "daemon/backend/cpu/decoders/heif/avif_pixels.h"

#include <algorithm>
#include <new>

namespace millrace {
namespace {

using Bytes8 = std::unique_ptr<std::uint8_t[]>;

int even_up(int value) {
  return (value + 1) & ~1;
}

// Those that libyuv has constants for, as libavif asks it.
bool is_known_to_libyuv(const avifImage& image) {
  switch (image.matrixCoefficients) {
    case AVIF_MATRIX_COEFFICIENTS_BT709:
    case AVIF_MATRIX_COEFFICIENTS_UNSPECIFIED:
    case AVIF_MATRIX_COEFFICIENTS_BT470BG:
    case AVIF_MATRIX_COEFFICIENTS_BT601:
    case AVIF_MATRIX_COEFFICIENTS_BT2020_NCL:
      return true;
    case AVIF_MATRIX_COEFFICIENTS_CHROMA_DERIVED_NCL:
      break;
    default:
      return false;
  }
  switch (image.colorPrimaries) {
    case AVIF_COLOR_PRIMARIES_BT709:
    case AVIF_COLOR_PRIMARIES_UNSPECIFIED:
    case AVIF_COLOR_PRIMARIES_BT470BG:
    case AVIF_COLOR_PRIMARIES_BT601:
    case AVIF_COLOR_PRIMARIES_BT2020:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool AvifPixels::is_made_shallow() const {
  if (image_.depth <= 8 || !is_known_to_libyuv(image_)) return false;
  const bool is_grey = image_.yuvFormat == AVIF_PIXEL_FORMAT_YUV400;
  if (is_grey || !has_alpha_) return is_grey == has_alpha_;
  return image_.depth > 10 && image_.yuvFormat != AVIF_PIXEL_FORMAT_YUV420;
}

// `rows` shows rows of the picture; and then the same of 8 bits a sample.
Result<void> AvifPixels::make_shallow(avifImage& rows) {
  const bool is_grey = rows.yuvFormat == AVIF_PIXEL_FORMAT_YUV400;
  const bool is_narrow = rows.yuvFormat == AVIF_PIXEL_FORMAT_YUV420 || rows.yuvFormat == AVIF_PIXEL_FORMAT_YUV422;
  const std::size_t width = rows.width, height = rows.height;
  if (!shallow_) shallow_.reset(new (std::nothrow) std::uint8_t[width * (kRows + 2 * kMargin + 2) * 4]);
  if (!shallow_) return memory_error();
  const unsigned shift = rows.depth - 8;
  std::uint8_t* to = shallow_.get();
  const auto make = [&](std::uint8_t*& plane, std::uint32_t& row_bytes, std::size_t columns, std::size_t lines) {
    if (plane == nullptr) return;
    std::uint8_t* const begin = to;
    for (std::size_t y = 0; y < lines; ++y, to += columns) {
      const auto* const from = reinterpret_cast<const std::uint16_t*>(plane + y * row_bytes);
      std::transform(from, from + columns, to,
                     [&](std::uint16_t value) { return static_cast<std::uint8_t>(std::min(value >> shift, 255)); });
    }
    plane = begin;
    row_bytes = static_cast<std::uint32_t>(columns);
  };
  make(rows.yuvPlanes[AVIF_CHAN_Y], rows.yuvRowBytes[AVIF_CHAN_Y], width, height);
  if (!is_grey) {
    const std::size_t columns = is_narrow ? (width + 1) / 2 : width;
    const std::size_t lines = rows.yuvFormat == AVIF_PIXEL_FORMAT_YUV420 ? (height + 1) / 2 : height;
    make(rows.yuvPlanes[AVIF_CHAN_U], rows.yuvRowBytes[AVIF_CHAN_U], columns, lines);
    make(rows.yuvPlanes[AVIF_CHAN_V], rows.yuvRowBytes[AVIF_CHAN_V], columns, lines);
  }
  make(rows.alphaPlane, rows.alphaRowBytes, width, height);
  rows.depth = 8;
  return {};
}

// Rows from `begin`, which is even, to `end` in rgb_.
Result<void> AvifPixels::convert_rows(int begin, int end) {
  const std::unique_ptr<avifImage, decltype(&::avifImageDestroy)> rows(avif_.create_image(), avif_.destroy_image);
  if (!rows) return memory_error();
  const avifCropRect place{0, static_cast<std::uint32_t>(begin), image_.width, static_cast<std::uint32_t>(end - begin)};
  avifResult done = avif_.set_view(rows.get(), &image_, &place);
  if (done == AVIF_RESULT_OK) {
    if (is_made_shallow()) MILLRACE_TRY_VOID(make_shallow(*rows));
    avifRGBImage rgb;
    avif_.set_defaults(&rgb, rows.get());
    rgb.depth = 8;
    rgb.format = has_alpha_ ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    rgb.rowBytes = image_.width * (has_alpha_ ? 4U : 3U);
    rgb.pixels = rgb_.get();
    done = avif_.make_rgb(rows.get(), &rgb);
  }
  if (done == AVIF_RESULT_OUT_OF_MEMORY) return memory_error();
  if (done == AVIF_RESULT_OK) return {};
  return Error{Code::kUnsupported, std::string("this kind of AVIF is not made RGB: ") + avif_.text_of(done)};
}

Result<void> AvifPixels::convert(const DecodeRequest& request, const kernels::MutableU8View& out) {
  const kernels::Box& box = request.box;
  const int pixel = has_alpha_ ? 4 : 3, height = static_cast<int>(image_.height);
  const std::size_t row_bytes = std::size_t{image_.width} * static_cast<std::size_t>(pixel);
  rgb_.reset(new (std::nothrow) std::uint8_t[row_bytes * (kRows + 2 * kMargin + 2)]);
  if (!rgb_) return memory_error();
  for (int top = box.top; top < box.top + box.height; top += kRows) {
    if (request.deadline.is_over()) return deadline_error();
    const int bottom = std::min(top + kRows, box.top + box.height);
    const int begin = std::max(0, (top - kMargin) & ~1), end = std::min(height, even_up(bottom + kMargin));
    MILLRACE_TRY_VOID(convert_rows(begin, end));
    for (int y = top; y < bottom; ++y) {
      const std::uint8_t* from =
          rgb_.get() + static_cast<std::size_t>(y - begin) * row_bytes + static_cast<std::ptrdiff_t>(box.left) * pixel;
      std::uint8_t* to = out.row(y - box.top);
      for (int x = 0; x < box.width; ++x, from += pixel, to += out.channels) std::copy_n(from, out.channels, to);
    }
  }
  return {};
}

}  // namespace millrace
