#include "daemon/formats/heic.h"

#include <algorithm>

#include "daemon/formats/codec_memory.h"
#include "daemon/heif/heif_boxes.h"
#include "daemon/heif/hevc_units.h"

namespace millrace {

bool is_heic(const ByteReader& bytes_untrusted) {
  return has_heif_brand(bytes_untrusted, {"heic", "heix", "heim", "heis"});
}

Result<ImageHeader> read_heic_header(ByteReader bytes_untrusted, Metadata) {
  const auto named = [](const Error& error) {
    const bool is_kind = error.code == Code::kUnsupported;
    return Error{error.code, (is_kind ? "this kind of HEIC is not decoded here: " : "a broken HEIC: ") + error.message};
  };
  const Result<HeifPicture> picture = read_heif_picture(bytes_untrusted, HeifMetadata::kSkip);
  if (!picture) return named(picture.error());
  const Result<HeifItems> items = HeifItems::open(bytes_untrusted);
  if (!items) return named(items.error());
  const HeifItem item = items->item(items->primary());
  ImageHeader header{.size = picture->size, .has = {.alpha = picture->alpha, .deep = picture->deep}};
  if (item.crop)
    header.size = {static_cast<std::uint32_t>(item.crop->width), static_cast<std::uint32_t>(item.crop->height)};
  header.exif = item.turned;
  return header;
}

CodecMemory heic_codec_memory(Size, ByteReader bytes_untrusted) {
  const Result<HeifPicture> picture = read_heif_picture(bytes_untrusted, HeifMetadata::kSkip);
  const Result<HeifItems> items = HeifItems::open(bytes_untrusted);
  if (!picture || !items) return {};
  constexpr std::uint32_t kLongestSide = 1 << 16;
  constexpr std::uint64_t kMostPicturesKept = 17, kNotes = 4,
                          kTables = 2 << 20;  // pictures; bytes a pixel; of each decoder
  const bool is_grid = picture->parts != 1;
  const std::uint32_t id = is_grid ? items->part(items->primary(), 0).value_or(items->primary()) : items->primary();
  const HeifItem part = items->item(id);
  const Result<HevcUnits> units = read_hevc_units(part.configuration, part.data, picture->part, {});
  const bool is_deep = !units || units->bits > 8 || is_grid;  // the other parts may be
  const auto padded = [&](std::uint32_t side) { return divide_up(std::min(side, kLongestSide) + 1, 64) * 64 + 64; };
  const std::uint64_t pixels = padded(picture->part.width) * padded(picture->part.height);
  const std::uint64_t one = pixels * (3 * (is_deep ? 2 : 1) + kNotes);
  const std::uint64_t kept =
      is_grid || !units ? kMostPicturesKept : std::clamp<std::uint64_t>(units->slices, 1, kMostPicturesKept);
  const Bytes other = kCodecFixed + Bytes{kTables + bytes_untrusted.size()};
  return {other + Bytes{one}, other + Bytes{one * kept}};
}

}  // namespace millrace
