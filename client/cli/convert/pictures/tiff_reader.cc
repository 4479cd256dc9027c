// TIFF, by libtiff: a file's only picture, in strips or tiles, of the kinds whose samples L3 holds as they are.
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include "client/cli/convert/pictures/lossless_reader.h"

namespace millrace::cli {
namespace {

constexpr std::size_t kMostStrip = std::size_t{1} << 30;  // that libtiff may take at once

// The file in memory as libtiff sees it, and the first error that it tells. Thread-bound(its owner).
struct TiffInMemory {
  PictureBytes file;
  std::uint64_t at = 0;
  std::string complaint;

  static TiffInMemory& of(thandle_t handle) { return *static_cast<TiffInMemory*>(handle); }
  static tmsize_t read(thandle_t handle, void* out, tmsize_t bytes) {
    TiffInMemory& from = of(handle);
    if (from.at >= from.file.size() || bytes <= 0) return 0;
    const auto there = std::min<std::uint64_t>(static_cast<std::uint64_t>(bytes), from.file.size() - from.at);
    std::memcpy(out, from.file.data() + from.at, there);
    from.at += there;
    return static_cast<tmsize_t>(there);
  }
  static tmsize_t write(thandle_t, void*, tmsize_t) { return -1; }
  static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    TiffInMemory& from = of(handle);
    const std::uint64_t base = whence == SEEK_CUR ? from.at : whence == SEEK_END ? from.file.size() : 0;
    return from.at = base + offset;
  }
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t handle) { return of(handle).file.size(); }
  static int complain(TIFF*, void* self, const char*, const char* format, va_list arguments) {
    std::string& complaint = of(self).complaint;
    if (!complaint.empty()) return 1;
    char text[160];
    std::vsnprintf(text, sizeof text, format, arguments);
    complaint = text;
    return 1;
  }
  static int ignore(TIFF*, void*, const char*, const char*, va_list) { return 1; }
};

using TiffPointer = std::unique_ptr<TIFF, void (*)(TIFF*)>;

TiffPointer open_tiff(TiffInMemory& source) {
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  if (!options) return {nullptr, TIFFClose};
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostStrip);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), TiffInMemory::complain, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), TiffInMemory::ignore, nullptr);
  // m: the file is not mapped. c: strips are not to be cut into smaller ones.
  return {TIFFClientOpenExt("file", "rmc", &source, TiffInMemory::read, TiffInMemory::write, TiffInMemory::seek,
                            TiffInMemory::close, TiffInMemory::size, nullptr, nullptr, options.get()),
          TIFFClose};
}

Error tiff_error(const TiffInMemory& source) {
  return damaged_picture(source.complaint.empty() ? "it makes no sense" : source.complaint);
}

struct TiffFields {
  std::uint32_t width = 0, height = 0;
  std::uint16_t bits = 1, samples = 1, compression = 1, photometric = 0, planes = 1, format = 1;
  std::uint16_t extras = 0, extra = EXTRASAMPLE_UNSPECIFIED;  // the first of them
  bool is_big_endian = false;

  bool has_alpha() const { return extras == 1 && extra == EXTRASAMPLE_UNASSALPHA; }
};

TiffFields fields_of(TIFF* tiff) {
  TiffFields fields;
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
  if (fields.extras > 0 && kinds != nullptr) fields.extra = kinds[0];
  fields.is_big_endian = TIFFIsBigEndian(tiff) != 0;
  return fields;
}

// Compressions that the daemon decodes, but for JPEG.
bool is_decoded(std::uint16_t compression) {
  constexpr std::array<std::uint16_t, 8> kDecoded{
      COMPRESSION_NONE, COMPRESSION_CCITTRLE,      COMPRESSION_CCITTFAX3, COMPRESSION_CCITTFAX4,
      COMPRESSION_LZW,  COMPRESSION_ADOBE_DEFLATE, COMPRESSION_DEFLATE,   COMPRESSION_PACKBITS};
  return std::ranges::find(kDecoded, compression) != kDecoded.end();
}

// Why pictures of these fields are copied.
WhyCopied why_not(const TiffFields& fields) {
  if (fields.photometric == PHOTOMETRIC_SEPARATED) return WhyCopied::kCmyk;
  if (fields.format != SAMPLEFORMAT_UINT || fields.bits > 16) return WhyCopied::kSampleKind;
  if (fields.samples > 4) return WhyCopied::kChannels;
  if (fields.compression == COMPRESSION_JPEG || fields.compression == COMPRESSION_OJPEG) return WhyCopied::kLossy;
  if (!is_decoded(fields.compression)) return WhyCopied::kKind;
  const bool is_small = fields.bits == 1 || fields.bits == 2 || fields.bits == 4;
  const bool is_plain = fields.planes == PLANARCONFIG_CONTIG || fields.samples == 1;
  bool is_held = false;
  switch (fields.photometric) {
    case PHOTOMETRIC_MINISWHITE:  // Pillow does not invert 16 bits, and does not read them in the other byte order
      is_held = fields.samples == 1 && (is_small || fields.bits == 8 || (fields.bits == 16 && !fields.is_big_endian));
      break;
    case PHOTOMETRIC_MINISBLACK:
      is_held = (fields.samples == 1 && (is_small || fields.bits == 8 || fields.bits == 16)) ||
                (fields.samples == 2 && fields.bits == 8 && fields.has_alpha() && is_plain);
      break;
    case PHOTOMETRIC_PALETTE:
      is_held = fields.samples == 1 && (is_small || fields.bits == 8);
      break;
    case PHOTOMETRIC_RGB:
      is_held = (fields.bits == 8 || fields.bits == 16) &&
                (fields.samples == 3 || (fields.samples == 4 && fields.has_alpha())) &&
                (is_plain || fields.samples == 3);
      break;
    default:
      break;
  }
  if (!is_held) return WhyCopied::kKind;
  return is_l3_size(fields.width, fields.height) ? WhyCopied::kNothing : WhyCopied::kSides;
}

// Strips or tiles, one after the other, to the picture's rows.
class TiffParts {
 public:
  TiffParts(TIFF* tiff, const TiffFields& fields, StoredPicture& picture)
      : tiff_(tiff), fields_(fields), picture_(picture) {}

  // kNothing: the picture is there. kKind: a strip or tile is larger than kMostStrip. Error: what libtiff says.
  Result<WhyCopied> read(const TiffInMemory& source) {
    std::uint32_t wide = fields_.width, high = fields_.height;
    const bool is_tiled = TIFFIsTiled(tiff_) != 0;
    if (is_tiled) {
      if (TIFFGetField(tiff_, TIFFTAG_TILEWIDTH, &wide) != 1 || TIFFGetField(tiff_, TIFFTAG_TILELENGTH, &high) != 1)
        return tiff_error(source);
    } else {
      TIFFGetFieldDefaulted(tiff_, TIFFTAG_ROWSPERSTRIP, &high);
      high = std::min(high, fields_.height);
    }
    const tmsize_t row = is_tiled ? TIFFTileRowSize(tiff_) : TIFFScanlineSize(tiff_);
    const tmsize_t part = is_tiled ? TIFFTileSize(tiff_) : TIFFVStripSize(tiff_, high);
    if (wide == 0 || high == 0 || row <= 0 || part <= 0 || part / row < static_cast<tmsize_t>(high))
      return tiff_error(source);
    if (static_cast<std::size_t>(part) > kMostStrip) return WhyCopied::kKind;
    bytes_.resize(static_cast<std::size_t>(part));
    row_ = static_cast<std::size_t>(row);
    is_apart_ = fields_.planes != PLANARCONFIG_CONTIG && fields_.samples > 1;
    for (std::uint16_t plane = 0; plane < (is_apart_ ? fields_.samples : 1); ++plane) {
      for (std::uint64_t top = 0; top < fields_.height; top += high) {
        for (std::uint64_t left = 0; left < fields_.width; left += wide) {
          const auto x = static_cast<std::uint32_t>(left), y = static_cast<std::uint32_t>(top);
          const std::uint32_t rows = std::min(high, fields_.height - y);
          // What libtiff has nothing for it leaves as it was, and calls it good: then it is black.
          std::ranges::fill(bytes_, std::uint8_t{0});
          if (!(is_tiled ? read_tile(x, y, plane) : read_strip(y, rows, plane))) return tiff_error(source);
          for (std::uint32_t i = 0; i < rows; ++i)
            keep(bytes_.data() + i * row_, x, std::min(wide, fields_.width - x), y + i, plane);
        }
      }
    }
    return WhyCopied::kNothing;
  }

 private:
  bool read_tile(std::uint32_t x, std::uint32_t y, std::uint16_t plane) {
    const auto bytes = static_cast<tmsize_t>(bytes_.size());
    return TIFFReadEncodedTile(tiff_, TIFFComputeTile(tiff_, x, y, 0, plane), bytes_.data(), bytes) == bytes;
  }
  bool read_strip(std::uint32_t y, std::uint32_t rows, std::uint16_t plane) {
    const auto bytes = static_cast<tmsize_t>(rows * row_);
    return TIFFReadEncodedStrip(tiff_, TIFFComputeStrip(tiff_, y, plane), bytes_.data(), bytes) == bytes;
  }

  // `count` pixels of a row from column `x` on.
  void keep(const std::uint8_t* from, std::uint32_t x, std::uint32_t count, std::uint32_t y, std::uint16_t plane) {
    const std::size_t sample = fields_.bits == 16 ? 2 : 1, pixel = sample * fields_.samples;
    std::uint8_t* const to = picture_.row(static_cast<int>(y)) + x * pixel;
    if (fields_.bits < 8) return widen(from, count, to);
    if (is_apart_) {
      for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * pixel + plane * sample, from + i * sample, sample);
      return;
    }
    std::memcpy(to, from, count * pixel);
    if (is_inverted()) std::for_each(to, to + count, [](std::uint8_t& value) { value = 255 - value; });
  }

  // The first sample in a byte's upper bits. White is 255, however few bits it has; numbers of colours stay.
  void widen(const std::uint8_t* from, std::uint32_t count, std::uint8_t* to) const {
    const unsigned bits = fields_.bits, most = (1U << bits) - 1;
    const unsigned factor = fields_.photometric == PHOTOMETRIC_PALETTE ? 1 : 255 / most;
    for (std::size_t x = 0; x < count; ++x) {
      const unsigned value = from[x * bits / 8] >> (8 - bits - x * bits % 8) & most;
      to[x] = static_cast<std::uint8_t>((is_inverted() ? most - value : value) * factor);
    }
  }

  bool is_inverted() const { return fields_.photometric == PHOTOMETRIC_MINISWHITE && fields_.bits <= 8; }

  TIFF* const tiff_;
  const TiffFields& fields_;
  StoredPicture& picture_;
  std::vector<std::uint8_t> bytes_;  // of a strip or tile
  std::size_t row_ = 0;              // bytes of one in it
  bool is_apart_ = false;            // a plane for each colour
};

// Colours of 16 bits become 8 as in Pillow: the upper byte.
bool read_tiff_palette(TIFF* tiff, const TiffFields& fields, StoredPicture& picture) {
  std::uint16_t *red = nullptr, *green = nullptr, *blue = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_COLORMAP, &red, &green, &blue) != 1) return false;
  picture.colour_bytes = 3;
  for (std::size_t i = 0; i < std::size_t{1} << fields.bits; ++i) {
    for (const std::uint16_t* const colour : {red, green, blue})
      picture.palette.push_back(static_cast<std::uint8_t>(colour[i] >> 8U));
  }
  return true;
}

void read_tiff_metadata(PictureBytes file, TIFF* tiff, StoredPicture& picture) {
  std::uint32_t bytes = 0;
  const void* data = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_ICCPROFILE, &bytes, &data) == 1) assign(picture.icc, data, bytes);
  if (TIFFGetField(tiff, TIFFTAG_XMLPACKET, &bytes, &data) == 1) assign(picture.xmp, data, bytes);
  // EXIF is a TIFF file itself. BigTIFF is not read as such.
  std::uint16_t orientation = 0;
  if (TIFFIsBigTIFF(tiff) == 0) {
    picture.orientation = orientation_by(file, picture.xmp);
  } else if (TIFFGetField(tiff, TIFFTAG_ORIENTATION, &orientation) == 1) {
    picture.orientation = valid_orientation(orientation);
  } else {
    picture.orientation = orientation_by({}, picture.xmp);
  }
}

}  // namespace

Result<WhyCopied> read_tiff(PictureBytes file_untrusted, StoredPicture& picture) {
  TiffInMemory source{.file = file_untrusted};
  const TiffPointer tiff = open_tiff(source);
  if (!tiff) return tiff_error(source);
  const TiffFields fields = fields_of(tiff.get());
  if (const WhyCopied why = why_not(fields); why != WhyCopied::kNothing) return why;
  if (TIFFLastDirectory(tiff.get()) == 0) return WhyCopied::kSeveral;
  const kernels::Size size{static_cast<int>(fields.width), static_cast<int>(fields.height)};
  MILLRACE_TRY_VOID(picture.begin({size, fields.samples, fields.bits == 16 ? 2 : 1}));
  // By libdeflate it takes data that is too long for a strip or tile, and writes none of it, for good.
  if (fields.compression == COMPRESSION_ADOBE_DEFLATE || fields.compression == COMPRESSION_DEFLATE)
    TIFFSetField(tiff.get(), TIFFTAG_DEFLATE_SUBCODEC, DEFLATE_SUBCODEC_ZLIB);
  MILLRACE_TRY(const WhyCopied why, TiffParts(tiff.get(), fields, picture).read(source));
  if (why != WhyCopied::kNothing) return why;
  if (fields.photometric == PHOTOMETRIC_PALETTE && !read_tiff_palette(tiff.get(), fields, picture))
    return damaged_picture("its palette is missing");
  read_tiff_metadata(file_untrusted, tiff.get(), picture);
  return WhyCopied::kNothing;
}

}  // namespace millrace::cli
