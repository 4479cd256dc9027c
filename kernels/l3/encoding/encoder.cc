#include "kernels/l3/encoding/encoder.h"

#include <algorithm>

#include "kernels/base/hash.h"
#include "kernels/l3/encoding/encode_tile.h"
#include "kernels/l3/head_fields.h"
#include "kernels/l3/image.h"

namespace millrace::kernels::l3 {
namespace {

template <class Number>
void put(Number number, std::size_t at, std::vector<std::uint8_t>& out) {
  for (std::size_t i = 0; i < sizeof number; ++i) out[at + i] = static_cast<std::uint8_t>(number >> (8 * i));
}

// What version 2 cannot hold; empty: it can.
std::string refusal(const Picture& picture) {
  const SampleView& samples = picture.samples;
  if (samples.channels < 1 || samples.channels > kMostChannels) return "other than 1 to 4 channels";
  if (samples.bytes != 1 && samples.bytes != 2) return "samples of other than 8 or 16 bits";
  if (samples.size.width < 1 || samples.size.height < 1) return "no pixels";
  const auto width = static_cast<std::uint32_t>(samples.size.width),
             height = static_cast<std::uint32_t>(samples.size.height);
  if (width > kMostSide || height > kMostSide) return "a side of more than " + std::to_string(kMostSide) + " pixels";
  if (std::uint64_t{width} * height > kMostPixels) return "more than " + std::to_string(kMostPixels) + " pixels";
  if (picture.orientation < 1 || picture.orientation > 8) return "an orientation that there is not";
  if (std::max({picture.exif.size(), picture.icc.size(), picture.xmp.size()}) > kMostExtraBytes)
    return "metadata of more than 16 MiB";
  if (picture.palette.empty()) return {};
  const auto colour = static_cast<std::size_t>(picture.colour_bytes);
  if ((colour != 3 && colour != 4) || picture.palette.size() % colour != 0 ||
      picture.palette.size() / colour > kMostColours || samples.channels != 1 || samples.bytes != 1)
    return "a palette beside other samples than numbers of 8 bits";
  return {};
}

Head head_for(const Picture& picture) {
  Head head;
  head.channels = picture.samples.channels;
  head.depth = 8 * picture.samples.bytes;
  head.orientation = picture.orientation;
  head.size = picture.samples.size;
  if (!picture.palette.empty()) {
    head.colour_bytes = picture.colour_bytes;
    head.colours = static_cast<int>(picture.palette.size()) / picture.colour_bytes;
  }
  head.exif_bytes = static_cast<std::uint32_t>(picture.exif.size());
  head.icc_bytes = static_cast<std::uint32_t>(picture.icc.size());
  head.xmp_bytes = static_cast<std::uint32_t>(picture.xmp.size());
  return head;
}

// All of the head but its checksums.
void put_head(const Head& head, std::vector<std::uint8_t>& out) {
  std::copy(field::kMagicIs.begin(), field::kMagicIs.end(), out.begin());
  out[field::kVersion] = field::kVersionIs;
  out[field::kChannels] = static_cast<std::uint8_t>(head.channels);
  out[field::kDepth] = static_cast<std::uint8_t>(head.depth);
  out[field::kOrientation] = static_cast<std::uint8_t>(head.orientation);
  put(static_cast<std::uint32_t>(head.size.width), field::kWidth, out);
  put(static_cast<std::uint32_t>(head.size.height), field::kHeight, out);
  put(static_cast<std::uint16_t>(head.colours), field::kColours, out);
  out[field::kColourBytes] = static_cast<std::uint8_t>(head.colour_bytes);
  out[field::kSide] = field::kSideIs;
  put(head.exif_bytes, field::kExifBytes, out);
  put(head.icc_bytes, field::kIccBytes, out);
  put(head.xmp_bytes, field::kXmpBytes, out);
  put(head.data_bytes, field::kDataBytes, out);
}

void copy_to(FileBytes part, std::size_t at, std::vector<std::uint8_t>& out) {
  std::copy(part.begin(), part.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

TileEncoder tile_encoder(Target target) {
#if defined(__x86_64__)
  if (target != Target::kScalar) return encode_tile_avx2;
#else
  static_cast<void>(target);
#endif
  return encode_tile_scalar;
}

std::string encode(const Picture& picture, Effort effort, Target target, std::vector<std::uint8_t>& out) {
  if (std::string what = refusal(picture); !what.empty()) return what;
  Head head = head_for(picture);
  out.assign(head.data_at(), 0);
  copy_to(picture.exif, kHeadBytes, out);
  copy_to(picture.icc, head.icc_at(), out);
  copy_to(picture.xmp, head.xmp_at(), out);
  copy_to(picture.palette, head.palette_at(), out);
  const SampleView& all = picture.samples;
  const TileEncoder encode_tile = tile_encoder(target);
  std::size_t offset_at = head.offsets_at() + sizeof(std::uint32_t);
  for (int top = 0; top < all.size.height; top += kTileSide) {
    for (int left = 0; left < all.size.width; left += kTileSide, offset_at += sizeof(std::uint32_t)) {
      const Size size{std::min(kTileSide, all.size.width - left), std::min(kTileSide, all.size.height - top)};
      encode_tile(
          {all.row(top) + std::ptrdiff_t{left} * all.channels * all.bytes, size, all.channels, all.bytes, all.stride},
          effort, out);
      head.data_bytes = out.size() - head.data_at();
      if (head.data_bytes > UINT32_MAX) return "4 GiB of tiles or more";
      put(static_cast<std::uint32_t>(head.data_bytes), offset_at, out);
    }
  }
  put_head(head, out);
  const FileBytes file(out);
  put(xxh3_64(file.subspan(head.data_at()), 0), field::kDataChecksum, out);
  put(xxh3_64(file.subspan(kHeadBytes, head.data_at() - kHeadBytes), xxh3_64(file.first(field::kHeadChecksum), 0)),
      field::kHeadChecksum, out);
  return {};
}

}  // namespace millrace::kernels::l3
