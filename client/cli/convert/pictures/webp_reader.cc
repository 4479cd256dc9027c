// Lossless WebP, by libwebp; its chunks of metadata (RFC 9649, 2.7) by ourselves.
#include <webp/decode.h>

#include <optional>
#include <string_view>

#include "client/cli/convert/pictures/lossless_reader.h"
#include "proto/base/byte_reader.h"

namespace millrace::cli {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kFirstWebpChunk = 12, kWebpChunkHead = 8;
constexpr int kLosslessWebp = 2;  // WebPBitstreamFeatures::format

// The first chunk of each kind counts, as libwebp's demuxer has it, and only if the flags of VP8X announce it.
void read_webp_metadata(const ByteReader& file, StoredPicture& picture) {
  struct {
    std::string_view kind;
    std::uint8_t flag;
    std::vector<std::uint8_t>& to;
    bool is_there;
  } parts[] = {{"ICCP"sv, 0x20, picture.icc, false},
               {"EXIF"sv, 0x08, picture.exif, false},
               {"XMP "sv, 0x04, picture.xmp, false}};
  if (!file.holds(kFirstWebpChunk, "VP8X"sv)) return;
  const std::uint8_t flags = file.u8(kFirstWebpChunk + kWebpChunkHead).value_or(0);
  std::size_t at = kFirstWebpChunk;
  while (const std::optional<std::uint32_t> length = file.little32(at + 4)) {
    const ByteView data = file.part(at + kWebpChunkHead, *length);
    if (data.size() < *length) break;
    for (auto& part : parts) {
      if (part.is_there || (flags & part.flag) == 0 || !file.holds(at, part.kind)) continue;
      assign(part.to, data.data(), data.size());
      part.is_there = true;
    }
    at += kWebpChunkHead + *length + (*length & 1U);
  }
  drop_exif_prefix(picture.exif);
  picture.orientation = orientation_by(picture.exif, picture.xmp);
}

const char* text_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "its data wants more memory than there is";
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "cut off";
    default:
      return "its data makes no sense";
  }
}

}  // namespace

Result<WhyCopied> read_webp(PictureBytes file_untrusted, StoredPicture& picture) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return Error{Code::kInternal, "needs another libwebp: it was built for another interface version"};
  VP8StatusCode status = WebPGetFeatures(file_untrusted.data(), file_untrusted.size(), &config.input);
  if (status != VP8_STATUS_OK) return damaged_picture(text_of(status));
  if (config.input.has_animation != 0) return WhyCopied::kSeveral;
  if (config.input.format != kLosslessWebp) return WhyCopied::kLossy;
  const bool has_alpha = config.input.has_alpha != 0;
  const int channels = has_alpha ? 4 : 3;
  MILLRACE_TRY_VOID(picture.begin({{config.input.width, config.input.height}, channels, 1}));
  config.output.colorspace = has_alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {picture.row(0), static_cast<int>(picture.row_bytes()), picture.sample_bytes()};
  status = WebPDecode(file_untrusted.data(), file_untrusted.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) return damaged_picture(text_of(status));
  read_webp_metadata(ByteReader(std::as_bytes(file_untrusted)), picture);
  picture.drop_equal_channels();
  return WhyCopied::kNothing;
}

}  // namespace millrace::cli
