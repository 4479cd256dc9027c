#include "daemon/formats/avif.h"

#include <algorithm>
#include <string>

#include "daemon/formats/codec_memory.h"
#include "daemon/heif/heif_boxes.h"
#include "proto/metadata/exif_orientation.h"

namespace millrace {
namespace {

constexpr std::uint32_t kLongest = 1 << 16;  // side that AV1 has
constexpr std::uint64_t kBoxBytes = 32;      // that libavif makes of a byte of boxes, at most
constexpr std::uint64_t kMostKept =
    8 + 2;  // pictures: AV1's references, one before its sides are scaled, one with grain

Error not_decoded(const std::string& why) {
  return {Code::kUnsupported, "this kind of AVIF is not decoded here: " + why};
}

// How many pictures of this size dav1d may hold at a time, by the frames that the data says it has: AV1, 5.3, 4.10.5.
std::uint64_t pictures_kept(ByteView data_untrusted) {
  constexpr std::uint32_t kFrameHeader = 3, kFrame = 6;
  const ByteReader data(data_untrusted);
  std::uint64_t frames = 0;
  for (std::size_t at = 0; at < data.size() && frames < kMostKept;) {
    const std::uint32_t header = *data.u8(at), type = header >> 3U & 15U;
    if (type == kFrameHeader || type == kFrame) ++frames;
    if ((header & 2U) == 0) break;  // as long as the data is
    at += (header & 4U) != 0 ? 2 : 1;
    std::uint64_t bytes = 0;
    for (unsigned shift = 0; shift < 56; shift += 7) {
      const std::uint64_t byte = data.u8(at++).value_or(0);
      bytes |= (byte & 127U) << shift;
      if (byte < 128) break;
    }
    if (bytes > data.size()) break;
    at += static_cast<std::size_t>(bytes);
  }
  return frames == 0 ? kMostKept : std::min(frames + 2, kMostKept);
}

}  // namespace

bool is_avif(const ByteReader& bytes_untrusted) {
  return has_heif_brand(bytes_untrusted, {"avif", "avis"});
}

Result<ImageHeader> read_avif_header(ByteReader bytes_untrusted, Metadata metadata) {
  Result<HeifPicture> picture =
      read_heif_picture(bytes_untrusted, metadata == Metadata::kRead ? HeifMetadata::kRead : HeifMetadata::kSkip);
  if (!picture && picture.error().code == Code::kUnsupported) return not_decoded(picture.error().message);
  if (!picture) return Error{picture.error().code, "a broken AVIF: " + picture.error().message};
  // libavif before version 1 puts them together by their numbers, and wants the length of this box.
  if (!heif_parts_ascend(bytes_untrusted))
    return not_decoded(
        "the parts of its grid do not ascend in the grid's order, are not as many as it says, or belong "
        "to something else as well");
  if (picture->description_is_open) return not_decoded("its box `meta` has no length");
  ImageHeader header{
      .size = picture->size,
      .has = {.alpha = picture->alpha, .deep = picture->deep, .animation = bytes_untrusted.holds(8, "avis")}};
  if (metadata == Metadata::kSkip) return header;
  header.exif = picture->turned;
  if (picture->turned == 1 && !exif_orientation(picture->exif)) {
    header.exif.reset();
    header.xmp = xmp_orientation(picture->xmp);
  }
  return header;
}

CodecMemory avif_codec_memory(Size size, ByteReader bytes_untrusted) {
  const Result<HeifPicture> picture = read_heif_picture(bytes_untrusted, HeifMetadata::kSkip);
  if (!picture) return {};
  constexpr std::uint64_t kNotes = 2;                        // bytes a pixel: what dav1d notes of blocks
  constexpr std::uint64_t kTables = 3 << 20, kColumn = 256;  // of each dav1d; rows to filter
  constexpr std::uint64_t kStripRows = 72, kStripPixel = 8;  // in RGB, and in 8 bits before
  const std::uint64_t sample = picture->deep ? 2 : 1, parts = std::max(picture->parts, 1U);
  const auto padded = [](std::uint32_t side) { return divide_up(std::min(side, kLongest), 128) * 128; };
  const std::uint64_t pixels = padded(picture->part.width) * padded(picture->part.height);
  const std::uint64_t tables = std::min(picture->part.width, kLongest) * kColumn + kTables;
  // Decoded once, and as often as the file may have dav1d keep pictures.
  const auto decoded = [&](std::uint64_t planes, std::uint64_t pictures) {
    return parts * (pixels * pictures * (planes * sample + kNotes) + tables);
  };
  const std::uint64_t planes = picture->alpha ? 4 : 3;
  const std::uint64_t whole = parts > 1 ? std::uint64_t{size.width} * size.height * planes * sample : 0;
  const Bytes other =
      kCodecFixed + Bytes{whole + size.width * kStripRows * kStripPixel + picture->box_bytes * kBoxBytes};
  const std::uint64_t kept = parts > 1 ? kMostKept : pictures_kept(picture->data);
  std::uint64_t needed = decoded(3, 1), at_most = decoded(3, kept);
  if (picture->alpha) {
    needed += decoded(1, 1);
    at_most += decoded(3, parts > 1 ? kMostKept : pictures_kept(picture->alpha_data));
  }
  return {other + Bytes{needed}, other + Bytes{at_most}};
}

}  // namespace millrace
