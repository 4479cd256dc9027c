#include "daemon/formats/tiff.h"

#include <algorithm>

#include "daemon/formats/codec_memory.h"
#include "proto/metadata/exif_orientation.h"

namespace millrace {
namespace {

using namespace std::string_view_literals;

// TIFF 6.0, section 8; ExtraSamples and tiles: sections 18 and 15.
enum class Tag : std::uint32_t {
  kWidth = 256,
  kHeight = 257,
  kBits = 258,
  kCompression = 259,
  kPhotometric = 262,
  kOrientation = 274,
  kFillOrder = 266,
  kSamples = 277,
  kRowsPerStrip = 278,
  kPlanes = 284,
  kColourMap = 320,
  kTileWidth = 322,
  kTileHeight = 323,
  kExtraSamples = 338,
  kXmpPacket = 700,
};

constexpr std::uint64_t kMostEntries = 65'535;
constexpr std::uint32_t kPalette = 3, kInks = 5, kJpeg = 7, kPackBits = 32773, kApart = 2;

std::size_t bytes_of_field_type(std::uint32_t type) {
  constexpr std::uint8_t kBytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
  return type < sizeof(kBytes) ? kBytes[type] : 0;
}

struct Entry {
  std::uint32_t type = 0;
  std::uint64_t count = 0;
  std::size_t values_at = 0;
  bool is_outside = false;  // of the directory

  std::uint64_t bytes() const { return count * bytes_of_field_type(type); }
};

// The first directory. Positions are not below 2^63, for the file is not.
class Directory {
 public:
  static Result<Directory> open(ByteReader bytes);

  std::optional<std::uint32_t> number(Tag tag) const {
    const std::optional<Entry> entry = find(tag);
    if (!entry || entry->count == 0) return std::nullopt;
    switch (bytes_of_field_type(entry->type)) {
      case 1:
        return bytes_.u8(entry->values_at);
      case 2:
        return u16(entry->values_at);
      case 4:
        return u32(entry->values_at);
      default:
        return at_most_u32(u64(entry->values_at));
    }
  }
  // 0: of a type that Pillow does not take for a number.
  std::optional<std::uint32_t> orientation() const {
    const std::optional<Entry> entry = find(Tag::kOrientation);
    if (!entry || entry->count == 0) return std::nullopt;
    return orientation_value(bytes_, big_endian_, entry->type, entry->values_at);
  }
  std::uint32_t number_or(Tag tag, std::uint32_t otherwise) const { return number(tag).value_or(otherwise); }
  bool has(Tag tag) const { return find(tag).has_value(); }
  // Whether it has `count` whole numbers of 16 bits, whatever their type, and all of them are in the file.
  bool has_u16(Tag tag, std::uint64_t count) const {
    constexpr std::uint32_t kByte = 1, kShort = 3, kLong = 4, kLong8 = 16;
    const std::optional<Entry> entry = find(tag);
    if (!entry || entry->count != count || values(tag).size() != entry->bytes()) return false;
    if (entry->type == kByte || entry->type == kShort) return true;
    if (entry->type != kLong && entry->type != kLong8) return false;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t at = entry->values_at + static_cast<std::size_t>(i) * bytes_of_field_type(entry->type);
      if ((entry->type == kLong ? u32(at) : at_most_u32(u64(at))).value_or(~0U) > 0xFFFF) return false;
    }
    return true;
  }
  ByteView values(Tag tag) const {
    const std::optional<Entry> entry = find(tag);
    return entry ? bytes_.part(entry->values_at, entry->bytes()) : ByteView();
  }

  std::uint64_t entries() const { return entries_; }
  // What libtiff reads beside the directory itself.
  std::uint64_t outside_bytes() const {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < entries_; ++i) {
      const std::optional<Entry> one = entry(i);
      if (one && one->is_outside) sum += std::min<std::uint64_t>(one->bytes(), std::uint64_t{1} << 40U);
    }
    return sum;
  }

 private:
  Directory(ByteReader bytes, bool big_endian, bool is_big) : bytes_(bytes), big_endian_(big_endian), is_big_(is_big) {}

  std::optional<std::uint32_t> u16(std::size_t at) const {
    return big_endian_ ? bytes_.big16(at) : bytes_.little16(at);
  }
  std::optional<std::uint32_t> u32(std::size_t at) const {
    return big_endian_ ? bytes_.big32(at) : bytes_.little32(at);
  }
  std::optional<std::uint64_t> u64(std::size_t at) const {
    const auto first = u32(at), second = u32(at + 4);
    if (!second) return std::nullopt;
    return big_endian_ ? std::uint64_t{*first} << 32U | *second : std::uint64_t{*second} << 32U | *first;
  }
  static std::optional<std::uint32_t> at_most_u32(std::optional<std::uint64_t> value) {
    return value && *value <= 0xFFFFFFFF ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
  }

  std::optional<std::uint64_t> offset(std::size_t at) const {
    if (is_big_) return u64(at);
    return u32(at);
  }
  std::size_t entry_bytes() const { return is_big_ ? 20 : 12; }
  std::size_t inside_bytes() const { return is_big_ ? 8 : 4; }
  std::size_t entry_at(std::uint64_t i) const { return first_ + static_cast<std::size_t>(i) * entry_bytes(); }

  std::optional<Entry> entry(std::uint64_t i) const {
    const std::size_t at = entry_at(i), value = at + (is_big_ ? 12 : 8);
    const auto type = u16(at + 2);
    const auto count = offset(at + 4), place = offset(value);
    if (!type || !count || !place || *count > (std::uint64_t{1} << 48U)) return std::nullopt;
    Entry one{*type, *count, value};
    one.is_outside = one.bytes() > inside_bytes();
    if (one.is_outside) one.values_at = static_cast<std::size_t>(std::min<std::uint64_t>(*place, bytes_.size()));
    return one;
  }

  std::optional<Entry> find(Tag tag) const {
    for (std::uint64_t i = 0; i < entries_; ++i) {
      if (u16(entry_at(i)) == static_cast<std::uint32_t>(tag)) return entry(i);
    }
    return std::nullopt;
  }

  ByteReader bytes_;
  bool big_endian_;
  bool is_big_;
  std::size_t first_ = 0;  // entry
  std::uint64_t entries_ = 0;
};

Result<Directory> Directory::open(ByteReader bytes) {
  const bool big_endian = bytes.holds(0, "MM"sv);
  const bool is_big = (big_endian ? bytes.big16(2) : bytes.little16(2)) == 43U;
  Directory directory(bytes, big_endian, is_big);
  const std::optional<std::uint64_t> at = directory.offset(is_big ? 8 : 4);
  if (!at || *at >= bytes.size()) return cut_off("the first directory of a TIFF");
  const auto place = static_cast<std::size_t>(*at);
  const std::optional<std::uint64_t> entries =
      is_big ? directory.u64(place) : std::optional<std::uint64_t>(directory.u16(place));
  if (!entries) return cut_off("the first directory of a TIFF");
  if (*entries > kMostEntries) return Error{Code::kInvalid, "a broken TIFF: its directory has too many entries"};
  directory.first_ = place + (is_big ? 8 : 2);
  directory.entries_ = *entries;
  if (bytes.size() < directory.entry_at(*entries)) return cut_off("the end of a TIFF's directory");
  return directory;
}

// The samples of a pixel that are neither alpha nor anything else.
std::uint32_t colours_of(const Directory& directory) {
  const std::uint32_t photometric = directory.number_or(Tag::kPhotometric, 0);
  return photometric == kInks ? 4 : photometric == 2 || photometric == 6 ? 3 : 1;
}

std::uint32_t samples_of(const Directory& directory) {
  return std::clamp<std::uint32_t>(directory.number_or(Tag::kSamples, 1), 1, 16);
}

// Whether the colours that its samples name are there. libtiff takes the samples for grey where they are not.
bool lacks_colours(const Directory& directory) {
  if (directory.number_or(Tag::kPhotometric, 0) != kPalette) return false;
  const std::uint32_t bits = std::min(directory.number_or(Tag::kBits, 1), 16U);
  return !directory.has_u16(Tag::kColourMap, std::uint64_t{3} << bits);
}

}  // namespace

bool is_tiff(const ByteReader& bytes_untrusted) {
  return bytes_untrusted.holds(0, "II\x2A\0"sv) || bytes_untrusted.holds(0, "MM\0\x2A"sv) ||
         bytes_untrusted.holds(0, "II\x2B\0\x08\0\0\0"sv) || bytes_untrusted.holds(0, "MM\0\x2B\0\x08\0\0"sv);
}

Result<ImageHeader> read_tiff_header(ByteReader bytes_untrusted, Metadata metadata) {
  MILLRACE_TRY(const Directory directory, Directory::open(bytes_untrusted));
  const auto width = directory.number(Tag::kWidth), height = directory.number(Tag::kHeight);
  if (!width || !height) return Error{Code::kInvalid, "a broken TIFF: its directory does not say how large it is"};
  if (directory.outside_bytes() > bytes_untrusted.size())
    return Error{Code::kInvalid, "a broken TIFF: its directory speaks of more bytes than the file has"};
  if (lacks_colours(directory))
    return Error{Code::kInvalid, "a broken TIFF: its palette is missing, cut off or of another length"};
  ImageHeader header{.size = {*width, *height},
                     .has = {.alpha = samples_of(directory) > colours_of(directory),
                             .cmyk = directory.number_or(Tag::kPhotometric, 0) == kInks,
                             .deep = directory.number_or(Tag::kBits, 1) == 16}};
  if (metadata == Metadata::kSkip) return header;
  header.exif = directory.orientation();
  if (!header.exif) header.xmp = xmp_orientation(directory.values(Tag::kXmpPacket));
  return header;
}

CodecMemory tiff_codec_memory(Size size, ByteReader bytes_untrusted) {
  const Result<Directory> directory = Directory::open(bytes_untrusted);
  if (!directory) return {};
  const std::uint64_t samples = samples_of(*directory);
  const std::uint64_t pixel = samples * divide_up(std::min(directory->number_or(Tag::kBits, 1), 64U), 8);
  const std::uint64_t planes = directory->number_or(Tag::kPlanes, 1) == kApart ? samples : 1;
  const std::uint64_t wide = std::max(directory->number_or(Tag::kTileWidth, size.width), 1U);
  const bool is_tiled = directory->has(Tag::kTileWidth) || directory->has(Tag::kTileHeight);
  const std::uint64_t high =
      std::max(directory->number_or(is_tiled ? Tag::kTileHeight : Tag::kRowsPerStrip, is_tiled ? 1 : size.height), 1U);
  // Where each strip or tile is and how long, twice while they are read; a value of 2 bytes becomes one of 8.
  const std::uint64_t parts =
      planes * divide_up(size.width, is_tiled ? wide : size.width) * divide_up(size.height, high);
  const std::uint64_t lists = parts * 40 + directory->outside_bytes() * 6 + directory->entries() * 512;
  constexpr std::uint64_t kRows = 256;  // bytes a column that libjpeg holds, and what a row is read into
  const std::uint32_t compression = directory->number_or(Tag::kCompression, 1);
  // A tile; a strip where one is decoded as a whole.
  const std::uint64_t part =
      is_tiled ? std::min<std::uint64_t>(wide, 1U << 20U) * std::min<std::uint64_t>(high, 1U << 20U) * pixel
      : compression == kPackBits ? std::uint64_t{size.width} * std::min<std::uint64_t>(high, size.height) * pixel
                                 : 0;
  const std::uint64_t reversed = directory->number(Tag::kFillOrder) == 2U ? bytes_untrusted.size() : 0;
  const std::uint64_t row = std::max<std::uint64_t>(size.width, is_tiled ? wide : 0) * (kRows + pixel);
  const Bytes needed = kCodecFixed + Bytes{lists + part + reversed + row};
  constexpr Bytes kScans = 110_MiB;  // libtiff lets libjpeg have 100 MiB for JPEG data in several scans
  const bool is_jpeg = compression == kJpeg;
  return {needed, is_jpeg ? needed + kScans : needed};
}

}  // namespace millrace
