#include "daemon/cache/disk/store_format.h"

#include <xxhash.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

constexpr std::array<char, 8> kMagic{'M', 'R', 'S', 'T', 'O', 'R', 'E', '\n'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderChecksumAt = 32, kRecordChecksumAt = 112;
constexpr std::string_view kPrefix = "seg-", kDataSuffix = ".mrc", kTableSuffix = ".mrt";
constexpr std::size_t kDigits = 16;

template <class T>
void put(RecordBytes& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <class T>
T get(RecordView bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Of what stands before the checksum, and of where it stands: nothing can be moved elsewhere.
std::uint64_t checksum_of(RecordView bytes, std::size_t count, SegmentId segment, std::uint64_t place,
                          std::uint64_t seed) {
  std::array<std::byte, kRecordBytes + 16> all{};
  std::memcpy(all.data(), bytes.data(), count);
  std::memcpy(all.data() + count, &segment, sizeof segment);
  std::memcpy(all.data() + count + sizeof segment, &place, sizeof place);
  return XXH3_64bits_withSeed(all.data(), count + sizeof segment + sizeof place, seed);
}

constexpr std::uint64_t kHeaderPlace = std::numeric_limits<std::uint64_t>::max();

std::uint8_t features_of(const ImageFeatures& has) {
  return static_cast<std::uint8_t>(has.alpha | has.cmyk << 1 | has.deep << 2 | has.passes << 3 | has.animation << 4);
}

ImageFeatures features_from(std::uint8_t bits) {
  return {.alpha = (bits & 1) != 0,
          .cmyk = (bits & 2) != 0,
          .deep = (bits & 4) != 0,
          .passes = (bits & 8) != 0,
          .animation = (bits & 16) != 0};
}

std::string name_of(SegmentId segment, std::string_view suffix) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string name(kPrefix);
  for (int shift = 60; shift >= 0; shift -= 4) name += kHex[static_cast<std::uint64_t>(segment) >> shift & 15];
  return name.append(suffix);
}

}  // namespace

RecordBytes to_bytes(const TableHeader& header, std::uint64_t seed) {
  RecordBytes bytes{};
  put(bytes, 0, kMagic);
  put(bytes, 8, kVersion);
  put(bytes, 12, static_cast<std::uint32_t>(kRecordBytes));
  put(bytes, 16, header.segment);
  put(bytes, 24, header.born);
  put(bytes, kHeaderChecksumAt, checksum_of(bytes, kHeaderChecksumAt, header.segment, kHeaderPlace, seed));
  return bytes;
}

std::optional<TableHeader> read_table_header(RecordView bytes_untrusted, SegmentId segment, std::uint64_t seed) {
  const RecordView bytes = bytes_untrusted;
  const bool ours = get<std::array<char, 8>>(bytes, 0) == kMagic && get<std::uint32_t>(bytes, 8) == kVersion &&
                    get<std::uint32_t>(bytes, 12) == kRecordBytes && get<SegmentId>(bytes, 16) == segment &&
                    get<std::uint64_t>(bytes, kHeaderChecksumAt) ==
                        checksum_of(bytes, kHeaderChecksumAt, segment, kHeaderPlace, seed);
  if (!ours) return std::nullopt;
  return TableHeader{.segment = segment, .born = get<std::uint64_t>(bytes, 24)};
}

RecordBytes to_bytes(const StoreRecord& record, SegmentId segment, std::uint32_t number, std::uint64_t seed) {
  const SourceInfo& info = record.facts.info;
  RecordBytes bytes{};
  put(bytes, 0, record.key.low);
  put(bytes, 8, record.key.high);
  put(bytes, 16, std::uint64_t{record.extent.offset});
  put(bytes, 24, record.extent.length);
  put(bytes, 28, record.kind);
  put(bytes, 29, info.format);
  put(bytes, 30, info.orientation);
  put(bytes, 31, features_of(info.has));
  put(bytes, 32, info.stored.width);
  put(bytes, 36, info.stored.height);
  put(bytes, 40, info.codec.needed.count);
  put(bytes, 48, info.codec.at_most.count);
  put(bytes, 56, record.facts.contents);
  put(bytes, 64, record.facts.tensor_of);
  put(bytes, 72, record.facts.dataset);
  put(bytes, 80, record.facts.sample);
  put(bytes, 84, record.facts.saves);
  put(bytes, 88, record.facts.costs);
  put(bytes, 96, record.written);
  put(bytes, 104, record.extent.checksum);
  put(bytes, kRecordChecksumAt, checksum_of(bytes, kRecordChecksumAt, segment, number, seed));
  put(bytes, kUsedAt, record.used);
  put(bytes, kDeadAt, static_cast<std::uint8_t>(record.dead ? 1 : 0));
  return bytes;
}

std::optional<StoreRecord> read_record(RecordView bytes_untrusted, SegmentId segment, std::uint32_t number,
                                       std::uint64_t seed) {
  const RecordView bytes = bytes_untrusted;
  if (get<std::uint64_t>(bytes, kRecordChecksumAt) != checksum_of(bytes, kRecordChecksumAt, segment, number, seed))
    return std::nullopt;
  const auto offset = get<std::uint64_t>(bytes, 16);
  const auto length = get<std::uint32_t>(bytes, 24);
  const auto kind = get<std::uint8_t>(bytes, 28), format = get<std::uint8_t>(bytes, 29);
  const auto orientation = get<std::uint8_t>(bytes, 30);
  constexpr std::uint64_t kEnd = std::numeric_limits<std::uint32_t>::max();
  const bool possible = kind < kCachedKinds && format < kImageFormats && orientation >= 1 && orientation <= 8 &&
                        length > 0 && length <= kLargestStored && offset <= kEnd && offset + length <= kEnd &&
                        std::isfinite(get<float>(bytes, 84)) && std::isfinite(get<float>(bytes, 88));
  if (!possible) return std::nullopt;
  StoreRecord record;
  record.key = {get<std::uint64_t>(bytes, 0), get<std::uint64_t>(bytes, 8)};
  record.kind = static_cast<CachedKind>(kind);
  record.extent = {static_cast<std::uint32_t>(offset), length, get<std::uint64_t>(bytes, 104)};
  SourceInfo& info = record.facts.info;
  info.format = static_cast<ImageFormat>(format);
  info.orientation = orientation;
  info.has = features_from(get<std::uint8_t>(bytes, 31));
  info.stored = {get<std::uint32_t>(bytes, 32), get<std::uint32_t>(bytes, 36)};
  info.codec = {{get<std::uint64_t>(bytes, 40)}, {get<std::uint64_t>(bytes, 48)}};
  record.facts.contents = get<std::uint64_t>(bytes, 56);
  record.facts.tensor_of = get<std::uint64_t>(bytes, 64);
  record.facts.dataset = get<std::uint64_t>(bytes, 72);
  record.facts.sample = get<std::uint32_t>(bytes, 80);
  record.facts.saves = get<float>(bytes, 84);
  record.facts.costs = get<float>(bytes, 88);
  record.written = get<std::uint64_t>(bytes, 96);
  record.used = get<std::uint32_t>(bytes, kUsedAt);
  record.dead = get<std::uint8_t>(bytes, kDeadAt) != 0;
  return record;
}

std::uint64_t store_checksum(ByteView entry, std::uint64_t seed) {
  return XXH3_64bits_withSeed(entry.data(), entry.size(), seed);
}

std::string data_name(SegmentId segment) {
  return name_of(segment, kDataSuffix);
}

std::string table_name(SegmentId segment) {
  return name_of(segment, kTableSuffix);
}

std::optional<SegmentFileName> read_file_name(std::string_view name) {
  const bool data = name.ends_with(kDataSuffix);
  if (!data && !name.ends_with(kTableSuffix)) return std::nullopt;
  if (name.size() != kPrefix.size() + kDigits + kDataSuffix.size() || !name.starts_with(kPrefix)) return std::nullopt;
  std::uint64_t number = 0;
  const char* const digits = name.data() + kPrefix.size();
  if (std::from_chars(digits, digits + kDigits, number, 16).ptr != digits + kDigits) return std::nullopt;
  const SegmentFileName read{SegmentId{number}, data ? SegmentFile::kData : SegmentFile::kTable};
  if (name != (data ? data_name(read.segment) : table_name(read.segment))) return std::nullopt;  // capital letters
  return read;
}

}  // namespace millrace
