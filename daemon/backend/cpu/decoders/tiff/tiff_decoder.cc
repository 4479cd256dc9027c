#include "daemon/backend/cpu/decoders/tiff/tiff_decoder.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string_view>

#include "daemon/backend/cpu/decoders/raster_request.h"
#include "daemon/backend/cpu/decoders/tiff/tiff_pixels.h"
#include "daemon/backend/cpu/decoders/tiff/tiff_source.h"

namespace millrace {
namespace {

using Kind = TiffPixels::Kind;

constexpr std::size_t kMostAtOnce = std::size_t{64} << 20;  // where the header does not say what is needed

struct Fields {
  std::uint32_t width = 0, height = 0;
  std::uint16_t bits = 1, samples = 1, compression = 1, photometric = 0, planes = 1, format = 1;
  std::uint16_t extras = 0;
  std::uint16_t alpha = EXTRASAMPLE_UNSPECIFIED;  // what the first of the extras is
  bool is_tiled = false, is_big_endian = false;
};

Fields fields_of(TIFF* tiff) {
  Fields fields;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &fields.width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &fields.height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &fields.bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &fields.samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &fields.compression);
  TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &fields.photometric);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &fields.planes);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &fields.format);
  std::uint16_t* kinds = nullptr;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &fields.extras, &kinds);
  if (fields.extras > 0 && kinds != nullptr) fields.alpha = kinds[0];
  fields.is_tiled = TIFFIsTiled(tiff) != 0;
  fields.is_big_endian = TIFFIsBigEndian(tiff) != 0;
  return fields;
}

Error unsupported(const std::string& what) {
  return {Code::kUnsupported, "this kind of TIFF is not decoded here: " + what};
}

// What libtiff says, or memory that it could not have.
Error error_of(const TiffSource& source) {
  if (source.is_out_of_memory()) return memory_error();
  if (source.complaint().find("Unsupported JPEG process") != std::string::npos)
    return {Code::kUnsupported, "this kind of TIFF is not decoded here: " + source.complaint()};
  return {Code::kInvalid, "damaged TIFF: " + (source.complaint().empty() ? "it makes no sense" : source.complaint())};
}

Result<void> check_compression(const Fields& fields) {
  switch (fields.compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
    case COMPRESSION_LZW:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_PACKBITS:
      return {};
    case COMPRESSION_JPEG:
      if (fields.bits == 8) return {};
      break;
    default:
      break;
  }
  return unsupported("compression " + std::to_string(fields.compression) + "; write it as LZW or Deflate");
}

std::string shape_of(const Fields& fields) {
  return std::to_string(fields.samples) + " samples a pixel of " + std::to_string(fields.bits) +
         " bits, photometric interpretation " + std::to_string(fields.photometric) +
         (fields.format == SAMPLEFORMAT_UINT ? "" : ", sample format " + std::to_string(fields.format)) +
         (fields.planes == PLANARCONFIG_CONTIG ? "" : ", in planes");
}

// nullopt: a kind that Pillow does not read, or that no tensor shows.
std::optional<Kind> kind_of(const Fields& fields) {
  const int bits = fields.bits, samples = fields.samples;
  const bool is_small = bits == 1 || bits == 2 || bits == 4, is_whole = bits == 8 || bits == 16;
  switch (fields.photometric) {
    case PHOTOMETRIC_MINISWHITE:
      if (bits == 16 && samples == 1 && !fields.is_big_endian) return Kind::kGrey;  // Pillow does not turn it
      if ((is_small || bits == 8) && samples == 1) return Kind::kGreyInverted;
      return std::nullopt;
    case PHOTOMETRIC_MINISBLACK:
      if ((is_small || is_whole) && samples == 1) return Kind::kGrey;
      if (bits == 8 && samples == 2 && fields.alpha != EXTRASAMPLE_ASSOCALPHA) return Kind::kGrey;
      return std::nullopt;
    case PHOTOMETRIC_PALETTE:
      if ((is_small || bits == 8) && samples == 1) return Kind::kPalette;
      if (bits == 8 && samples == 2 && fields.alpha != EXTRASAMPLE_ASSOCALPHA) return Kind::kPalette;
      return std::nullopt;
    case PHOTOMETRIC_RGB:
      if (!(bits == 8 && samples >= 3 && samples <= 6) && !(bits == 16 && (samples == 3 || samples == 4)))
        return std::nullopt;
      return samples > 3 && fields.alpha == EXTRASAMPLE_ASSOCALPHA ? Kind::kRgbPremultiplied : Kind::kRgb;
    case PHOTOMETRIC_SEPARATED:
      if ((bits == 8 && samples >= 4 && samples <= 6) || (bits == 16 && samples == 4)) return Kind::kCmyk;
      return std::nullopt;
    case PHOTOMETRIC_YCBCR:
      if (bits == 8 && samples == 3 && fields.compression == COMPRESSION_JPEG) return Kind::kRgb;  // by libjpeg
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

Result<TiffPixels> pixels_of(TIFF* tiff, const Fields& fields) {
  MILLRACE_TRY_VOID(check_compression(fields));
  const std::optional<Kind> kind = kind_of(fields);
  const bool is_apart = fields.planes != PLANARCONFIG_CONTIG && fields.samples > 1;
  if (!kind || fields.format != SAMPLEFORMAT_UINT || (is_apart && *kind != Kind::kRgb))
    return unsupported(shape_of(fields));
  if (fields.photometric == PHOTOMETRIC_YCBCR && is_apart) return unsupported(shape_of(fields));
  TiffPixels pixels{.kind = *kind, .bits = fields.bits, .samples = fields.samples};
  if (*kind != Kind::kPalette) return pixels;
  std::uint16_t *red = nullptr, *green = nullptr, *blue = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_COLORMAP, &red, &green, &blue) != 1)
    return Error{Code::kInvalid, "damaged TIFF: its palette is missing"};
  for (std::size_t i = 0; i < std::size_t{1} << fields.bits; ++i) {
    pixels.palette[3 * i] = static_cast<std::uint8_t>(red[i] >> 8U);
    pixels.palette[3 * i + 1] = static_cast<std::uint8_t>(green[i] >> 8U);
    pixels.palette[3 * i + 2] = static_cast<std::uint8_t>(blue[i] >> 8U);
  }
  return pixels;
}

// A palette's indices, or grey as it was written.
Result<void> show_tiff_indices(const Fields& fields, TiffPixels& pixels) {
  if (pixels.channels() != 1 && pixels.kind != Kind::kPalette) return coloured_error();
  if (fields.samples > 1 && fields.alpha != EXTRASAMPLE_UNSPECIFIED)
    return Error{Code::kInvalid, "a TIFF with transparency, of which no indices are read: store it without"};
  if (fields.compression == COMPRESSION_JPEG)
    return Error{Code::kInvalid, "a TIFF with JPEG in it, whose levels are not exact: make it anew, as LZW or Deflate"};
  if (pixels.kind == Kind::kPalette) {
    pixels.kind = Kind::kIndex;
  } else if (fields.bits == 1 || fields.bits == 16) {
    return levels_error(fields.bits == 1 ? "a grey TIFF of 1 bit" : "a grey TIFF of 16 bits");
  }
  return {};
}

// One decoding: the box's pixels out of rows, strips or tiles.
class Reading {
 public:
  Reading(TIFF* tiff, const Fields& fields, const TiffPixels& pixels, const DecodeRequest& request,
          const kernels::MutableU8View& out, const TiffSource& source)
      : tiff_(tiff), fields_(fields), pixels_(pixels), request_(request), out_(out), source_(source) {}

  Result<void> run() {
    // PackBits' runs may go across rows: a strip is decoded as a whole, as by Pillow.
    const bool by_strips = !fields_.is_tiled && fields_.compression == COMPRESSION_PACKBITS;
    const tmsize_t row = fields_.is_tiled ? TIFFTileRowSize(tiff_) : TIFFScanlineSize(tiff_);
    const tmsize_t bytes = fields_.is_tiled ? TIFFTileSize(tiff_) : by_strips ? TIFFStripSize(tiff_) : row;
    if (bytes <= 0 || row <= 0) return error_of(source_);
    if (static_cast<std::size_t>(bytes) > std::max(kMostAtOnce, static_cast<std::size_t>(request_.codec.count)))
      return unsupported("its strips or tiles are too large");
    part_.reset(new (std::nothrow) std::uint16_t[(static_cast<std::size_t>(bytes) + 1) / 2]());
    if (!part_) return memory_error();
    part_bytes_ = bytes;
    row_bytes_ = row;
    const bool is_apart = fields_.planes != PLANARCONFIG_CONTIG && fields_.samples > 1;
    for (int plane = 0; plane < (is_apart ? 3 : 1); ++plane) {
      plane_ = is_apart ? plane : kAllPlanes;
      MILLRACE_TRY_VOID(fields_.is_tiled ? read_tiles() : by_strips ? read_strips() : read_rows());
    }
    return {};
  }

 private:
  static constexpr int kAllPlanes = -1;

  std::uint16_t plane() const { return static_cast<std::uint16_t>(std::max(plane_, 0)); }
  std::uint8_t* part() const { return reinterpret_cast<std::uint8_t*>(part_.get()); }
  // What libtiff has nothing for it leaves as it was, and calls it good: then it is black, not somebody else's memory.
  void clear_part() { std::memset(part_.get(), 0, static_cast<std::size_t>(part_bytes_)); }
  bool is_late() const { return request_.deadline.is_over(); }

  Result<void> read_rows() {
    for (std::uint32_t y = 0; y < fields_.height; ++y) {
      if (y % 16 == 0 && is_late()) return deadline_error();
      clear_part();
      if (TIFFReadScanline(tiff_, part(), y, plane()) != 1) return error_of(source_);
      keep(part(), 0, static_cast<int>(fields_.width), static_cast<int>(y));
    }
    return {};
  }

  Result<void> read_strips() {
    std::uint32_t rows_of_a_strip = 0;
    TIFFGetFieldDefaulted(tiff_, TIFFTAG_ROWSPERSTRIP, &rows_of_a_strip);
    const std::uint32_t high = std::min(rows_of_a_strip, fields_.height);
    if (high == 0 || part_bytes_ / row_bytes_ < static_cast<tmsize_t>(high))
      return Error{Code::kInvalid, "damaged TIFF: its strips have no size"};
    for (std::uint64_t top = 0; top < fields_.height; top += high) {
      if (is_late()) return deadline_error();
      const std::uint32_t strip = TIFFComputeStrip(tiff_, static_cast<std::uint32_t>(top), plane());
      clear_part();
      if (TIFFReadEncodedStrip(tiff_, strip, part(), part_bytes_) < 0) return error_of(source_);
      const auto rows = static_cast<int>(std::min<std::uint64_t>(high, fields_.height - top));
      for (int y = 0; y < rows; ++y)
        keep(part() + y * row_bytes_, 0, static_cast<int>(fields_.width), static_cast<int>(top) + y);
    }
    return {};
  }

  Result<void> read_tiles() {
    std::uint32_t wide = 0, high = 0;
    TIFFGetField(tiff_, TIFFTAG_TILEWIDTH, &wide);
    TIFFGetField(tiff_, TIFFTAG_TILELENGTH, &high);
    if (wide == 0 || high == 0) return Error{Code::kInvalid, "damaged TIFF: its tiles have no size"};
    for (std::uint64_t top = 0; top < fields_.height; top += high) {
      for (std::uint64_t left = 0; left < fields_.width; left += wide) {
        if (is_late()) return deadline_error();
        const std::uint32_t tile =
            TIFFComputeTile(tiff_, static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(top), 0, plane());
        clear_part();
        if (TIFFReadEncodedTile(tiff_, tile, part(), part_bytes_) != part_bytes_) return error_of(source_);
        const auto columns = static_cast<int>(std::min<std::uint64_t>(wide, fields_.width - left));
        const auto rows = static_cast<int>(std::min<std::uint64_t>(high, fields_.height - top));
        for (int y = 0; y < rows; ++y)
          keep(part() + y * row_bytes_, static_cast<int>(left), columns, static_cast<int>(top) + y);
      }
    }
    return {};
  }

  // `columns` pixels of the picture's row `y`, from column `left` on, as far as they are the box's.
  void keep(const std::uint8_t* row, int left, int columns, int y) {
    const kernels::Box& box = request_.box;
    if (y < box.top || y >= box.top + box.height) return;
    const int begin = std::max(left, box.left), end = std::min(left + columns, box.left + box.width);
    if (begin >= end) return;
    std::uint8_t* const to = out_.row(y - box.top) + std::ptrdiff_t{begin - box.left} * out_.channels;
    if (plane_ == kAllPlanes) {
      pixels_.convert(row, begin - left, end - begin, to);
    } else {
      pixels_.convert_plane(row, begin - left, end - begin, plane_, to);
    }
  }

  TIFF* const tiff_;
  const Fields& fields_;
  const TiffPixels& pixels_;
  const DecodeRequest& request_;
  const kernels::MutableU8View& out_;
  const TiffSource& source_;
  std::unique_ptr<std::uint16_t[]> part_;  // a row, a strip or a tile
  tmsize_t part_bytes_ = 0, row_bytes_ = 0;
  int plane_ = kAllPlanes;
};

}  // namespace

void prepare_tiff() {
  using namespace std::string_view_literals;
  // Width, height, bits, photometric interpretation, where the strip is, and how long; the pixel lies in the header.
  constexpr std::string_view kFile =
      "II\x2A\0\x08\0\0\0\6\0"
      "\0\1\3\0\1\0\0\0\1\0\0\0"
      "\1\1\3\0\1\0\0\0\1\0\0\0"
      "\2\1\3\0\1\0\0\0\x08\0\0\0"
      "\6\1\3\0\1\0\0\0\1\0\0\0"
      "\x11\1\4\0\1\0\0\0\4\0\0\0"
      "\x17\1\4\0\1\0\0\0\1\0\0\0"
      "\0\0\0\0"sv;
  const ByteView bytes(reinterpret_cast<const std::byte*>(kFile.data()), kFile.size());
  PixelBuffer buffer;
  const auto made = decode_tiff({bytes, {1, 1}, {0, 0, 1, 1}, Clock::now() + std::chrono::seconds(5)}, buffer);
  static_cast<void>(made);
}

Result<kernels::U8View> decode_tiff(const DecodeRequest& request, PixelBuffer& buffer) {
  TiffSource source(request.bytes_untrusted);
  const TiffSource::Tiff tiff = source.open(std::max(kMostAtOnce, static_cast<std::size_t>(request.codec.count)));
  if (!tiff) return error_of(source);
  const Fields fields = fields_of(tiff.get());
  MILLRACE_TRY_VOID(check_size({static_cast<int>(fields.width), static_cast<int>(fields.height)}, request));
  MILLRACE_TRY(TiffPixels pixels, pixels_of(tiff.get(), fields));
  if (request.indices) MILLRACE_TRY_VOID(show_tiff_indices(fields, pixels));
  if (fields.photometric == PHOTOMETRIC_YCBCR) TIFFSetField(tiff.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  // By libdeflate it takes data that is too long for a strip or tile, and writes none of it, for good.
  if (fields.compression == COMPRESSION_ADOBE_DEFLATE || fields.compression == COMPRESSION_DEFLATE)
    TIFFSetField(tiff.get(), TIFFTAG_DEFLATE_SUBCODEC, DEFLATE_SUBCODEC_ZLIB);
  MILLRACE_TRY(const kernels::MutableU8View out, box_in(buffer, request, pixels.channels()));
  MILLRACE_TRY_VOID(Reading(tiff.get(), fields, pixels, request, out, source).run());
  return kernels::U8View(out);
}

}  // namespace millrace
