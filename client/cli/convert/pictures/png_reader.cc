// PNG, by libspng: every colour type and depth, interlaced or not. Metadata: eXIf, iCCP and XMP. The orientation may also
// stand in texts (proto/metadata/png_metadata.h).
#include <spng.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "client/cli/convert/pictures/lossless_reader.h"
#include "proto/base/byte_reader.h"
#include "proto/metadata/png_metadata.h"

namespace millrace::cli {
namespace {

using SpngContext = std::unique_ptr<spng_ctx, void (*)(spng_ctx*)>;

constexpr std::uint64_t kMostInflation = 1040;  // deflate makes 1032 bytes of one at the most
constexpr std::size_t kMostChunk = std::size_t{64} << 20;

// APNG 1.0: acTL stands before the image data.
bool is_animated_png(const ByteReader& file) {
  std::size_t at = 8;
  while (const std::optional<std::uint32_t> length = file.big32(at)) {
    if (file.holds(at + 4, "acTL")) return true;
    if (file.holds(at + 4, "IDAT") || file.holds(at + 4, "IEND")) return false;
    at += 12 + std::size_t{*length};
  }
  return false;
}

int channels_of(const spng_ihdr& header) {
  switch (header.color_type) {
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
      return 2;
    case SPNG_COLOR_TYPE_TRUECOLOR:
      return 3;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA:
      return 4;
    default:
      return 1;
  }
}

// Rows of 1, 2 or 4 bits, the first in the upper bits of a byte, to bytes.
void widen_rows(const spng_ihdr& header, PictureBytes packed, StoredPicture& picture) {
  const unsigned bits = header.bit_depth, most = (1U << bits) - 1;
  const unsigned factor = header.color_type == SPNG_COLOR_TYPE_INDEXED ? 1 : 255 / most;
  const std::size_t stride = (std::size_t{header.width} * bits + 7) / 8;
  for (std::uint32_t y = 0; y < header.height; ++y) {
    const std::uint8_t* const from = packed.data() + y * stride;
    std::uint8_t* const to = picture.row(static_cast<int>(y));
    for (std::size_t x = 0; x < header.width; ++x) {
      const unsigned bit = static_cast<unsigned>(x * bits % 8);
      to[x] = static_cast<std::uint8_t>((from[x * bits / 8] >> (8 - bits - bit) & most) * factor);
    }
  }
}

Result<void> read_png_pixels(spng_ctx* context, const spng_ihdr& header, StoredPicture& picture) {
  int error = 0;
  if (header.bit_depth >= 8) {
    error = spng_decode_image(context, picture.row(0), picture.sample_bytes(), SPNG_FMT_PNG, 0);
  } else {
    std::size_t bytes = 0;
    error = spng_decoded_image_size(context, SPNG_FMT_PNG, &bytes);
    std::vector<std::uint8_t> packed(error == 0 ? bytes : 0);
    if (error == 0) error = spng_decode_image(context, packed.data(), packed.size(), SPNG_FMT_PNG, 0);
    if (error == 0) widen_rows(header, packed, picture);
  }
  if (error == 0) error = spng_decode_chunks(context);
  if (error != 0) return damaged_picture(spng_strerror(error));
  return {};
}

Result<void> read_png_palette(spng_ctx* context, StoredPicture& picture) {
  spng_plte colours{};
  if (const int error = spng_get_plte(context, &colours); error != 0) return damaged_picture(spng_strerror(error));
  spng_trns alpha{};
  const bool has_alpha = spng_get_trns(context, &alpha) == 0;
  picture.colour_bytes = has_alpha ? 4 : 3;
  for (std::uint32_t i = 0; i < colours.n_entries; ++i) {
    const spng_plte_entry& colour = colours.entries[i];
    picture.palette.insert(picture.palette.end(), {colour.red, colour.green, colour.blue});
    if (has_alpha) picture.palette.push_back(i < alpha.n_type3_entries ? alpha.type3_alpha[i] : 255);
  }
  return {};
}

// --- metadata ---

// Of several packets of XMP the last one counts.
void read_xmp(spng_ctx* context, StoredPicture& picture) {
  std::uint32_t count = 0;
  if (spng_get_text(context, nullptr, &count) != 0) return;
  std::vector<spng_text> texts(count);
  if (spng_get_text(context, texts.data(), &count) != 0) return;
  for (const spng_text& text : texts) {
    if (std::string_view(text.keyword) == "XML:com.adobe.xmp") assign(picture.xmp, text.text, text.length);
  }
}

Result<void> read_png_metadata_of(const ByteReader& file, spng_ctx* context, StoredPicture& picture) {
  spng_exif exif{};
  if (spng_get_exif(context, &exif) == 0) assign(picture.exif, exif.data, exif.length);
  spng_iccp profile{};
  if (spng_get_iccp(context, &profile) == 0) assign(picture.icc, profile.profile, profile.profile_len);
  read_xmp(context, picture);
  MILLRACE_TRY(const StatedOrientation stated, read_png_metadata(file));
  picture.orientation = valid_orientation(stated.exif ? stated.exif : stated.xmp);
  return {};
}

}  // namespace

Result<WhyCopied> read_png(PictureBytes file_untrusted, StoredPicture& picture) {
  const SpngContext context(spng_ctx_new(0), spng_ctx_free);
  if (!context) return Error{Code::kExhausted, "cannot be read: out of memory"};
  spng_set_chunk_limits(context.get(), kMostChunk, 2 * kMostChunk);
  spng_ihdr header{};
  int error = spng_set_png_buffer(context.get(), file_untrusted.data(), file_untrusted.size());
  if (error == 0) error = spng_get_ihdr(context.get(), &header);
  if (error != 0) return damaged_picture(spng_strerror(error));
  const ByteReader file(std::as_bytes(file_untrusted));
  if (is_animated_png(file)) return WhyCopied::kSeveral;
  const bool is_indexed = header.color_type == SPNG_COLOR_TYPE_INDEXED;
  if (!is_indexed) {
    spng_trns key{};
    error = spng_get_trns(context.get(), &key);
    if (error == 0) return WhyCopied::kColourKey;
    if (error != SPNG_ECHUNKAVAIL) return damaged_picture(spng_strerror(error));
  }
  if (!is_l3_size(header.width, header.height)) return WhyCopied::kSides;
  const int channels = channels_of(header), bytes = header.bit_depth == 16 ? 2 : 1;
  const std::uint64_t bits = std::uint64_t{header.width} * header.height * header.bit_depth * unsigned(channels);
  if (bits / 8 / kMostInflation > file_untrusted.size()) return damaged_picture("cut off");
  MILLRACE_TRY_VOID(
      picture.begin({{static_cast<int>(header.width), static_cast<int>(header.height)}, channels, bytes}));
  MILLRACE_TRY_VOID(read_png_pixels(context.get(), header, picture));
  if (is_indexed) MILLRACE_TRY_VOID(read_png_palette(context.get(), picture));
  MILLRACE_TRY_VOID(read_png_metadata_of(file, context.get(), picture));
  return WhyCopied::kNothing;
}

}  // namespace millrace::cli
