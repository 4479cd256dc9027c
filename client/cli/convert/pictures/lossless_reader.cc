#include "client/cli/convert/pictures/lossless_reader.h"

#include <algorithm>
#include <string_view>

#include "kernels/raster/bmp.h"
#include "kernels/raster/pnm.h"
#include "proto/base/byte_reader.h"

namespace millrace::cli {
namespace {

using namespace std::string_view_literals;

bool is_png_file(const ByteReader& file) {
  return file.holds(0, "\x89PNG\r\n\x1A\n"sv);
}
bool is_tiff_file(const ByteReader& file) {
  return file.holds(0, "II\x2A\0"sv) || file.holds(0, "MM\0\x2A"sv) || file.holds(0, "II\x2B\0"sv) ||
         file.holds(0, "MM\0\x2B"sv);
}
bool is_webp_file(const ByteReader& file) {
  return file.holds(0, "RIFF"sv) && file.holds(8, "WEBP"sv);
}
// JPEG, GIF, AVIF and HEIC under another format's name.
bool is_other_picture(const ByteReader& file) {
  return file.holds(0, "\xFF\xD8\xFF"sv) || file.holds(0, "GIF8"sv) || file.holds(4, "ftyp"sv);
}

}  // namespace

Error damaged_picture(const std::string& what) {
  return {Code::kInvalid, "is damaged: " + what};
}

Result<WhyCopied> read_lossless(PictureBytes file_untrusted, StoredPicture& picture) {
  const ByteReader file(std::as_bytes(file_untrusted));
  if (is_png_file(file)) return read_png(file_untrusted, picture);
  if (is_tiff_file(file)) return read_tiff(file_untrusted, picture);
  if (is_webp_file(file)) return read_webp(file_untrusted, picture);
  if (kernels::raster::is_bmp(file_untrusted)) return read_bmp(file_untrusted, picture);
  if (kernels::raster::is_pnm(file_untrusted)) return read_pnm(file_untrusted, picture);
  if (is_other_picture(file)) return WhyCopied::kOtherFormat;
  return damaged_picture("it does not begin as a picture does");
}

}  // namespace millrace::cli
