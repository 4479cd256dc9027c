// PNM and BMP, by kernels/raster.
#include <algorithm>
#include <cstring>

#include "client/cli/convert/pictures/lossless_reader.h"
#include "kernels/raster/bmp.h"
#include "kernels/raster/bmp_rle.h"
#include "kernels/raster/pnm.h"

namespace millrace::cli {
namespace {

using kernels::raster::BmpHeader;
using kernels::raster::PnmHeader;

constexpr int kAlphaAndColours = 0 + 1 + 2 + 3;  // places of the four in a pixel

kernels::Size size_of(std::uint32_t width, std::uint32_t height) {
  return {static_cast<int>(width), static_cast<int>(height)};
}

void read_pnm_row(const PnmHeader& header, const std::uint8_t* from, std::size_t bytes, std::uint8_t* to) {
  if (header.sample_bits == 8) {
    std::memcpy(to, from, bytes);
  } else if (header.sample_bits == 16) {
    for (std::size_t i = 0; i < bytes; i += 2) {
      const auto sample = static_cast<std::uint16_t>(from[i] << 8U | from[i + 1]);
      std::memcpy(to + i, &sample, sizeof sample);
    }
  } else {
    const kernels::raster::PnmRows rows(header);
    rows.read(from, 0, {to, static_cast<int>(header.width), 1, 1, static_cast<std::ptrdiff_t>(header.width)});
  }
}

Result<void> read_bmp_pixels(const BmpHeader& header, PictureBytes file, StoredPicture& picture) {
  using kernels::raster::Decoded;
  const kernels::Size size = picture.shape().size;
  const kernels::MutableU8View out{picture.row(0), size.width, size.height, picture.shape().channels,
                                   static_cast<std::ptrdiff_t>(picture.row_bytes())};
  if (header.coding != BmpHeader::Coding::kRows) {
    const Decoded done = read_bmp_runs(header, file, kernels::whole(size), out, [] { return true; });
    if (done != Decoded::kAll) return damaged_picture("cut off");
    return {};
  }
  if (header.data_at > file.size() || (file.size() - header.data_at) / header.stride() < header.height - 1 ||
      file.size() - header.data_at < header.stride() * (header.height - 1) + header.row_bytes())
    return damaged_picture("cut off");
  for (int y = 0; y < size.height; ++y) {
    const std::uint8_t* from = file.data() + header.row_at(static_cast<std::uint32_t>(y));
    if (out.channels != 4) {
      read_bmp_row(header, from, 0, {out.row(y), out.width, 1, out.channels, out.stride});
      continue;
    }
    const int alpha = kAlphaAndColours - header.red - header.green - header.blue;
    std::uint8_t* to = out.row(y);
    for (int x = 0; x < out.width; ++x, from += 4, to += 4) {
      to[0] = from[header.red], to[1] = from[header.green], to[2] = from[header.blue], to[3] = from[alpha];
    }
  }
  return {};
}

}  // namespace

Result<WhyCopied> read_pnm(PictureBytes file_untrusted, StoredPicture& picture) {
  if (file_untrusted[1] >= '1' && file_untrusted[1] <= '3') return WhyCopied::kKind;
  PnmHeader header;
  const std::string wrong = read_pnm_header(file_untrusted, header);
  if (wrong.starts_with("this kind of PAM") || wrong.starts_with("PAM is decoded")) return WhyCopied::kKind;
  if (!wrong.empty()) return damaged_picture(wrong);
  const bool is_grey16 = header.sample_bits == 16 && header.most == 65535 && header.samples == 1;
  if (header.sample_bits != 1 && !(header.sample_bits == 8 && header.most == 255) && !is_grey16)
    return WhyCopied::kScaled;
  if (!is_l3_size(header.width, header.height)) return WhyCopied::kSides;
  if ((file_untrusted.size() - header.data_at) / header.row_bytes() < header.height) return damaged_picture("cut off");
  MILLRACE_TRY_VOID(picture.begin({size_of(header.width, header.height), header.samples, is_grey16 ? 2 : 1}));
  const std::uint8_t* from = file_untrusted.data() + header.data_at;
  for (int y = 0; y < picture.shape().size.height; ++y, from += header.row_bytes())
    read_pnm_row(header, from, picture.row_bytes(), picture.row(y));
  return WhyCopied::kNothing;
}

Result<WhyCopied> read_bmp(PictureBytes file_untrusted, StoredPicture& picture) {
  BmpHeader header;
  const std::string wrong = read_bmp_header(file_untrusted, header);
  if (wrong.starts_with("this kind of BMP")) return WhyCopied::kKind;
  if (!wrong.empty()) return damaged_picture(wrong);
  if (!is_l3_size(header.width, header.height)) return WhyCopied::kSides;
  const bool has_palette = header.pixels == BmpHeader::Pixels::kIndex && !header.is_grey;
  const kernels::raster::Palette palette = header.palette;
  if (has_palette) header.show_indices();
  const int channels = header.has_alpha ? 4 : header.channels();
  MILLRACE_TRY_VOID(picture.begin({size_of(header.width, header.height), channels, 1}));
  MILLRACE_TRY_VOID(read_bmp_pixels(header, file_untrusted, picture));
  if (has_palette) {
    picture.colour_bytes = 3;
    assign(picture.palette, palette.data(), std::size_t{3} << header.bits);
  }
  return WhyCopied::kNothing;
}

}  // namespace millrace::cli
