// The store's files, byte by byte: what a table's header and its records say, and how either is known to be ours and
// whole. README.md has the grammar and an example. Nothing here does I/O. Values; thread-safe: plain functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "daemon/cache/cache_key.h"
#include "daemon/model/bytes/cached_bytes.h"
#include "daemon/model/bytes/encoded_image.h"
#include "proto/base/bytes.h"

namespace millrace {

// A segment's random number, which names its two files.
enum class SegmentId : std::uint64_t {};

// What a record says of an entry beside its key, its kind and where it lies.
struct StoredFacts {
  SourceInfo info;              // of the file that it was made of
  std::uint64_t contents = 0;   // a digest of that file's bytes, if the caller that stored it wants one
  std::uint64_t tensor_of = 0;  // a digest of recipe and geometry. CachedKind::kTensor
  // For who decides what stays: the number of the data set that the file belongs to (0: none), and the sample's there;
  // seconds that a hit saves, and that making it took.
  std::uint64_t dataset = 0;
  std::uint32_t sample = 0;
  float saves = 0;
  float costs = 0;
  friend bool operator==(const StoredFacts&, const StoredFacts&) = default;
};

// Where an entry's bytes lie in its segment's data file, and what they hash to.
struct StoredExtent {
  std::uint32_t offset = 0;
  std::uint32_t length = 0;    // never 0
  std::uint64_t checksum = 0;  // store_checksum() of the bytes
};

struct StoreRecord {
  CacheKey key;
  CachedKind kind = CachedKind::kIndex;
  StoredFacts facts;
  StoredExtent extent;
  std::uint64_t written = 0;  // nanoseconds since 1970: of two of one key and kind, the later one holds
  // Changed in place, by any daemon, and not part of the checksum.
  std::uint32_t used = 0;  // seconds since 1970
  bool dead = false;       // forgotten
};

struct TableHeader {
  SegmentId segment{};
  std::uint64_t born = 0;  // nanoseconds since 1970
};

inline constexpr std::size_t kRecordBytes = 128;  // of a record, and of the header
using RecordBytes = std::array<std::byte, kRecordBytes>;
using RecordView = std::span<const std::byte, kRecordBytes>;

// Where in a record the two fields lie that are changed in place.
inline constexpr std::size_t kUsedAt = 120;
inline constexpr std::size_t kDeadAt = 124;

// The largest entry.
inline constexpr std::size_t kLargestStored = std::size_t{64} << 20;
// Entries of this size begin at a multiple of kStoreBlock, so that a hole gives nearly all of their blocks back.
inline constexpr std::size_t kLargeStored = std::size_t{32} << 10;
inline constexpr std::size_t kStoreBlock = 4096;

RecordBytes to_bytes(const TableHeader& header, std::uint64_t seed);
// nullopt: not the header of this segment's table, of another version, made with another seed, or damaged.
std::optional<TableHeader> read_table_header(RecordView bytes_untrusted, SegmentId segment, std::uint64_t seed);

// `number`: which record of its table it is, from 0.
RecordBytes to_bytes(const StoreRecord& record, SegmentId segment, std::uint32_t number, std::uint64_t seed);
// nullopt: not this record of this segment's table, or damaged, or it says what no record may say. `extent` can still
// lie behind the end of the data.
std::optional<StoreRecord> read_record(RecordView bytes_untrusted, SegmentId segment, std::uint32_t number,
                                       std::uint64_t seed);

std::uint64_t store_checksum(ByteView entry, std::uint64_t seed);

std::string data_name(SegmentId segment);   // "seg-0123456789abcdef.mrc"
std::string table_name(SegmentId segment);  // "seg-0123456789abcdef.mrt"

enum class SegmentFile : std::uint8_t { kData, kTable };
struct SegmentFileName {
  SegmentId segment{};
  SegmentFile file{};
};
// nullopt: no file of a segment.
std::optional<SegmentFileName> read_file_name(std::string_view name);

}  // namespace millrace
