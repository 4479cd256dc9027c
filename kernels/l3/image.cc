#include "kernels/l3/image.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/base/hash.h"
#include "kernels/l3/head_fields.h"

namespace millrace::kernels::l3 {
namespace {

template <class Number>
Number number_at(FileBytes bytes, std::size_t at) {
  Number number = 0;
  for (std::size_t i = sizeof number; i-- > 0;) number = static_cast<Number>(number << 8U | bytes[at + i]);
  return number;
}

std::uint32_t offset_at(FileBytes file, const Head& head, std::size_t index) {
  return number_at<std::uint32_t>(file, head.offsets_at() + index * sizeof(std::uint32_t));
}

// The fields that say what the picture is.
std::string read_picture(FileBytes file, Head& head) {
  head.channels = file[field::kChannels];
  head.depth = file[field::kDepth];
  head.orientation = file[field::kOrientation];
  const auto width = number_at<std::uint32_t>(file, field::kWidth),
             height = number_at<std::uint32_t>(file, field::kHeight);
  head.colours = number_at<std::uint16_t>(file, field::kColours);
  head.colour_bytes = file[field::kColourBytes];
  if (head.channels < 1 || head.channels > kMostChannels)
    return "it has " + std::to_string(head.channels) + " channels";
  if (head.depth != 8 && head.depth != 16) return "its samples have " + std::to_string(head.depth) + " bits";
  if (head.orientation < 1 || head.orientation > 8) return "its orientation is " + std::to_string(head.orientation);
  if (width < 1 || width > kMostSide || height < 1 || height > kMostSide || std::uint64_t{width} * height > kMostPixels)
    return "its size is " + std::to_string(width) + "x" + std::to_string(height);
  head.size = {static_cast<int>(width), static_cast<int>(height)};
  if (file[field::kSide] != field::kSideIs) return "its tiles have another size than 32 pixels a side";
  const bool has_palette = head.colours != 0;
  if (head.colours > kMostColours ||
      (has_palette ? head.colour_bytes != 3 && head.colour_bytes != 4 : head.colour_bytes != 0) ||
      (has_palette && (head.channels != 1 || head.depth != 8)))
    return "it has a palette that it cannot have";
  return {};
}

std::string read_lengths(FileBytes file, Head& head) {
  head.exif_bytes = number_at<std::uint32_t>(file, field::kExifBytes);
  head.icc_bytes = number_at<std::uint32_t>(file, field::kIccBytes);
  head.xmp_bytes = number_at<std::uint32_t>(file, field::kXmpBytes);
  head.data_bytes = number_at<std::uint64_t>(file, field::kDataBytes);
  if (std::max({head.exif_bytes, head.icc_bytes, head.xmp_bytes}) > kMostExtraBytes) return "its metadata is too long";
  if (head.data_bytes > UINT32_MAX) return "its tiles are too long";
  if (number_at<std::uint32_t>(file, field::kZero) != 0 || number_at<std::uint32_t>(file, field::kZeroToo) != 0)
    return "a field that is zero has a number";
  return {};
}

std::string read_offsets(FileBytes file, const Head& head) {
  std::uint32_t before = 0;
  for (std::size_t i = 0; i <= head.tiles(); ++i) {
    const std::uint32_t offset = offset_at(file, head, i);
    if (offset < before || (i == 0 && offset != 0)) return "tile " + std::to_string(i) + " begins where it cannot";
    before = offset;
  }
  return before == head.data_bytes ? std::string() : "its tiles end where they cannot";
}

}  // namespace

std::size_t Head::offsets_at() const {
  return (palette_at() + palette_bytes() + 7) / 8 * 8;
}

bool is_l3(FileBytes file_untrusted) {
  return file_untrusted.size() >= field::kMagicIs.size() &&
         std::equal(field::kMagicIs.begin(), field::kMagicIs.end(), file_untrusted.begin());
}

std::string read_head(FileBytes file_untrusted, Check check, Head& head) {
  if (!is_l3(file_untrusted)) return "it does not begin as such a file does";
  if (file_untrusted.size() <= field::kVersion) return "cut off";
  if (const int version = file_untrusted[field::kVersion]; version != field::kVersionIs)
    return "of version " + std::to_string(version) + ", where 1 and 2 are known";
  if (file_untrusted.size() < kHeadBytes) return "cut off";
  head = {};
  if (std::string wrong = read_picture(file_untrusted, head); !wrong.empty()) return wrong;
  if (std::string wrong = read_lengths(file_untrusted, head); !wrong.empty()) return wrong;
  if (file_untrusted.size() < head.data_at()) return "cut off";
  if (check == Check::kShape) return read_offsets(file_untrusted, head);
  const std::uint64_t sum = xxh3_64(file_untrusted.subspan(kHeadBytes, head.data_at() - kHeadBytes),
                                    xxh3_64(file_untrusted.first(field::kHeadChecksum), 0));
  if (sum != number_at<std::uint64_t>(file_untrusted, field::kHeadChecksum)) return "the checksum of its head differs";
  const FileBytes gap = file_untrusted.first(head.offsets_at()).subspan(head.palette_at() + head.palette_bytes());
  if (std::any_of(gap.begin(), gap.end(), [](std::uint8_t byte) { return byte != 0; }))
    return "a byte that is zero has a number";
  return read_offsets(file_untrusted, head);
}

std::string Image::read(FileBytes file_untrusted, Check check) {
  if (std::string wrong = read_head(file_untrusted, check, head_); !wrong.empty()) return wrong;
  const std::uint64_t there = file_untrusted.size() - head_.data_at();
  if (there < head_.data_bytes) return "cut off";
  if (there > head_.data_bytes) return std::to_string(there - head_.data_bytes) + " bytes follow its last tile";
  file_ = file_untrusted;
  if (check == Check::kShape) return {};
  const std::uint64_t sum = xxh3_64(file_untrusted.subspan(head_.data_at()), 0);
  if (sum != number_at<std::uint64_t>(file_untrusted, field::kDataChecksum)) return "the checksum of its tiles differs";
  return {};
}

FileBytes Image::tile(std::size_t index) const {
  const std::uint32_t begin = offset_at(file_, head_, index), end = offset_at(file_, head_, index + 1);
  return file_.subspan(head_.data_at() + begin, end - begin);
}

TileShape Image::tile_shape(std::size_t index) const {
  const int column = static_cast<int>(index % static_cast<std::size_t>(head_.across()));
  const int row = static_cast<int>(index / static_cast<std::size_t>(head_.across()));
  return {head_.channels, head_.bytes(), std::min(kTileSide, head_.size.width - column * kTileSide),
          std::min(kTileSide, head_.size.height - row * kTileSide)};
}

}  // namespace millrace::kernels::l3
