#include "client/cli/convert/pictures/png_writer.h"

#include <spng.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

namespace millrace::cli {
namespace {

using SpngWriter = std::unique_ptr<spng_ctx, void (*)(spng_ctx*)>;

// TIFF 6.0, section 2: a little-endian header, and a directory whose one entry is the orientation.
constexpr std::size_t kOrientationAt = 18;
constexpr std::array<std::uint8_t, 26> kOrientationAlone{'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3,
                                                         0,   1,   0,  0, 0, 0, 0, 0, 0, 0, 0,    0, 0};

// Whether a reader of the PNG will turn it as this picture is to be turned.
bool make_orientation_told(StoredPicture& picture) {
  if (orientation_by(picture.exif, picture.xmp) == picture.orientation) return true;
  if (!picture.exif.empty()) return false;
  picture.exif.assign(kOrientationAlone.begin(), kOrientationAlone.end());
  picture.exif[kOrientationAt] = static_cast<std::uint8_t>(picture.orientation);
  return true;
}

spng_ihdr header_of(const StoredPicture& picture) {
  const StoredPicture::Shape& shape = picture.shape();
  constexpr std::array<std::uint8_t, 5> kTypes{0, SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                                               SPNG_COLOR_TYPE_TRUECOLOR, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(shape.size.width);
  header.height = static_cast<std::uint32_t>(shape.size.height);
  header.bit_depth = static_cast<std::uint8_t>(8 * shape.bytes);
  header.color_type = picture.palette.empty() ? kTypes[static_cast<std::size_t>(shape.channels)]
                                              : std::uint8_t{SPNG_COLOR_TYPE_INDEXED};
  return header;
}

// PNG 11.3.1.1: colours behind the last one with an alpha that is not 255 need none. One stays, so that a palette with
// alpha is one again.
int set_palette(spng_ctx* context, const StoredPicture& picture) {
  const auto colour_bytes = static_cast<std::size_t>(picture.colour_bytes);
  spng_plte colours{};
  spng_trns alpha{};
  alpha.n_type3_entries = 1;
  for (std::size_t at = 0; at + colour_bytes <= picture.palette.size(); at += colour_bytes) {
    const std::uint8_t* const colour = picture.palette.data() + at;
    if (colour_bytes == 4) {
      alpha.type3_alpha[colours.n_entries] = colour[3];
      if (colour[3] != 255) alpha.n_type3_entries = colours.n_entries + 1;
    }
    colours.entries[colours.n_entries++] = {colour[0], colour[1], colour[2], 0};
  }
  const int error = spng_set_plte(context, &colours);
  return error != 0 || colour_bytes == 3 ? error : spng_set_trns(context, &alpha);
}

// XMP as libspng borrows it until the file is written.
struct LentXmp {
  std::vector<std::uint8_t> text;  // and a zero
  char nothing[1] = "";
};

// libspng borrows the bytes, and does not change them.
char* borrowed(std::vector<std::uint8_t>& bytes) {
  return reinterpret_cast<char*>(bytes.data());
}

bool set_metadata(spng_ctx* context, StoredPicture& picture, LentXmp& xmp) {
  if (!picture.exif.empty()) {
    spng_exif exif{picture.exif.size(), borrowed(picture.exif)};
    if (spng_set_exif(context, &exif) != 0) return false;
  }
  if (!picture.icc.empty()) {
    spng_iccp profile{"ICC profile", picture.icc.size(), borrowed(picture.icc)};
    if (spng_set_iccp(context, &profile) != 0) return false;
  }
  if (picture.xmp.empty()) return true;
  if (std::ranges::count(picture.xmp, 0) != 0) return false;
  xmp.text = picture.xmp;
  xmp.text.push_back(0);
  spng_text text{};
  constexpr std::string_view kXmpKeyword = "XML:com.adobe.xmp";
  std::copy(kXmpKeyword.begin(), kXmpKeyword.end(), text.keyword);
  text.type = SPNG_ITXT;
  text.length = picture.xmp.size();
  text.text = borrowed(xmp.text);
  text.language_tag = xmp.nothing;
  text.translated_keyword = xmp.nothing;
  return spng_set_text(context, &text, 1) == 0;
}

Error spng_error(int error) {
  return {Code::kInternal, std::string("becomes no PNG: ") + spng_strerror(error)};
}

}  // namespace

Result<WhyCopied> write_png_picture(StoredPicture& picture, std::vector<std::uint8_t>& out) {
  if (!make_orientation_told(picture)) return WhyCopied::kMetadata;
  const SpngWriter context(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
  if (!context) return Error{Code::kExhausted, "becomes no PNG: out of memory"};
  spng_ihdr header = header_of(picture);
  int error = spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  if (error == 0) error = spng_set_ihdr(context.get(), &header);
  if (error == 0 && !picture.palette.empty()) error = set_palette(context.get(), picture);
  if (error != 0) return spng_error(error);
  LentXmp xmp;
  if (!set_metadata(context.get(), picture, xmp)) return WhyCopied::kMetadata;
  error = spng_encode_image(context.get(), picture.row(0), picture.sample_bytes(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  if (error != 0) return spng_error(error);
  std::size_t bytes = 0;
  const std::unique_ptr<void, void (*)(void*)> file(spng_get_png_buffer(context.get(), &bytes, &error), std::free);
  if (!file || error != 0) return spng_error(error);
  assign(out, file.get(), bytes);
  return WhyCopied::kNothing;
}

}  // namespace millrace::cli
