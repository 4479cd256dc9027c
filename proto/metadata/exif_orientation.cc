#include "proto/metadata/exif_orientation.h"

#include <bit>

#include "proto/base/byte_reader.h"

namespace millrace {
namespace {

using namespace std::string_view_literals;

constexpr std::uint32_t kOrientationTag = 274;  // TIFF 6.0, section 8
constexpr std::size_t kEntryBytes = 12;

// TIFF 6.0, section 2: the types of values that are numbers to Pillow. Bytes and texts are none.
enum class Type : std::uint32_t {
  kShort = 3,
  kLong = 4,
  kRational = 5,
  kSignedByte = 6,
  kSignedShort = 8,
  kSignedLong = 9,
  kSignedRational = 10,
  kFloat = 11,
  kDouble = 12,
  kIfd = 13,
  kLong8 = 16
};

// 6.0 is 6; 0 is what is none of 1 to 8.
std::uint32_t whole(double value) {
  for (std::uint32_t orientation = 1; orientation <= 8; ++orientation) {
    if (value == orientation) return orientation;
  }
  return 0;
}

std::size_t bytes_of_type(std::uint32_t type) {
  constexpr std::uint8_t kBytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};
  return type < sizeof(kBytes) ? kBytes[type] : 0;
}

class Tiff {
 public:
  Tiff(ByteReader bytes, bool big) : bytes_(bytes), big_(big) {}

  std::size_t size() const { return bytes_.size(); }
  std::optional<std::uint32_t> u16(std::size_t at) const { return big_ ? bytes_.big16(at) : bytes_.little16(at); }
  std::optional<std::uint32_t> u32(std::size_t at) const { return big_ ? bytes_.big32(at) : bytes_.little32(at); }

  std::optional<std::uint64_t> u64(std::size_t at) const {
    const auto first = u32(at), second = u32(at + 4);
    if (!first || !second) return std::nullopt;
    return big_ ? std::uint64_t{*first} << 32U | *second : std::uint64_t{*second} << 32U | *first;
  }

  // The first value of an entry; 0 when its type is not a number. Negative ones come out far beyond 8.
  std::uint32_t value(std::uint32_t type, std::size_t at) const {
    const auto quotient = [](double above, double below) { return below == 0 ? 0 : whole(above / below); };
    const auto integer = [&](std::size_t place) { return static_cast<std::int32_t>(u32(place).value_or(0)); };
    switch (static_cast<Type>(type)) {
      case Type::kRational:
        return quotient(u32(at).value_or(0), u32(at + 4).value_or(0));
      case Type::kSignedRational:
        return quotient(integer(at), integer(at + 4));
      case Type::kFloat:
        return whole(std::bit_cast<float>(u32(at).value_or(0)));
      case Type::kDouble:
        return whole(std::bit_cast<double>(u64(at).value_or(0)));
      case Type::kLong8:
        return whole(static_cast<double>(u64(at).value_or(0)));
      case Type::kShort:
      case Type::kSignedShort:
        return u16(at).value_or(0);
      case Type::kLong:
      case Type::kSignedLong:
      case Type::kIfd:
        return u32(at).value_or(0);
      case Type::kSignedByte:
        return bytes_.u8(at).value_or(0);
    }
    return 0;
  }

 private:
  ByteReader bytes_;
  bool big_;
};

// The byte order and the mark 42 (TIFF 6.0, section 2), which some writers put down in the wrong order. Big-endian with
// BigTIFF's mark 43 is read as TIFF, as Pillow does; little-endian with it is not read, as there.
std::optional<Tiff> open_tiff(const ByteReader& bytes) {
  if (bytes.size() < 8) return std::nullopt;
  if (bytes.holds(0, "MM\0\x2A"sv) || bytes.holds(0, "MM\x2A\0"sv) || bytes.holds(0, "MM\0\x2B"sv))
    return Tiff(bytes, true);
  if (bytes.holds(0, "II\x2A\0"sv) || bytes.holds(0, "II\0\x2A"sv)) return Tiff(bytes, false);
  return std::nullopt;
}

}  // namespace

std::uint32_t orientation_value(const ByteReader& bytes_untrusted, bool big_endian, std::uint32_t type,
                                std::size_t at) {
  return Tiff(bytes_untrusted, big_endian).value(type, at);
}

std::optional<std::uint32_t> exif_orientation(ByteView exif_untrusted) {
  ByteReader block(exif_untrusted);
  for (int i = 0; i < 2 && block.holds(0, "Exif\0\0"sv); ++i) block = ByteReader(block.part(6, block.size()));
  if (block.size() == 0) return std::nullopt;
  const std::optional<Tiff> tiff = open_tiff(block);
  if (!tiff) return 0;
  const std::optional<std::uint32_t> ifd = tiff->u32(4);
  const std::optional<std::uint32_t> entries = ifd ? tiff->u16(*ifd) : std::nullopt;
  if (!entries) return std::nullopt;
  std::uint64_t values_bytes = 0;  // of all entries so far that lie outside the directory
  for (std::uint32_t i = 0; i < *entries; ++i) {
    const std::size_t entry = std::size_t{*ifd} + 2 + std::size_t{i} * kEntryBytes;
    const auto tag = tiff->u16(entry), type = tiff->u16(entry + 2), count = tiff->u32(entry + 4),
               field = tiff->u32(entry + 8);
    if (!field) return std::nullopt;  // the directory is cut off
    const std::uint64_t bytes = std::uint64_t{*count} * bytes_of_type(*type);
    if (bytes == 0) continue;
    std::size_t at = entry + 8;
    if (bytes > 4) {
      values_bytes += bytes;
      if (values_bytes > tiff->size()) continue;
      at = *field;
      if (at > tiff->size() || tiff->size() - at < bytes) return std::nullopt;
    }
    if (*tag == kOrientationTag) return tiff->value(*type, at);
  }
  return std::nullopt;
}

std::optional<std::uint32_t> xmp_orientation(ByteView xmp_untrusted) {
  constexpr std::string_view kName = "tiff:Orientation";
  const std::string_view text = ByteReader::text(xmp_untrusted);
  for (std::size_t at = text.find(kName); at != text.npos; at = text.find(kName, at + 1)) {
    std::string_view rest = text.substr(at + kName.size());
    if (rest.starts_with("=\"")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with('>')) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    if (!rest.empty() && rest.front() >= '0' && rest.front() <= '9')
      return static_cast<std::uint32_t>(rest.front() - '0');
  }
  return std::nullopt;
}

}  // namespace millrace
