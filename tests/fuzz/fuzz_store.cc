// A store on disk whose files are anything: whatever is read from it is what was written, and it goes on to take what is
// new. Byte 0 is flags, bytes 1 and 2 count those for the table; these are laid over a good table (XOR), and the others
// over its data. Flag 1: the table is as long as its bytes; flag 2: the data likewise. Flag 4: the table's bytes are
// records instead, kRecordChoice each, signed as only who knows the secret can: then what is read may be anything, too.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/cache/disk/disk_store.h"
#include "tests/support/host/temp_folder.h"

namespace {

using namespace millrace;

constexpr std::uint64_t kSecret = 5;
constexpr SegmentId kSegment{0x0123456789abcdef};
constexpr std::size_t kSizes[] = {60, 1, 300, 5000};
constexpr std::size_t kRecordChoice = 16;

void require(bool condition) {
  if (!condition) std::abort();
}

struct Files {
  std::string table, data;
};

std::string bytes_of(std::size_t number) {
  return std::string(kSizes[number], static_cast<char>('a' + number));
}

CacheKey key_of_number(std::size_t number) {
  return {number, number};
}

ByteView view_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void append_to(std::string& table, const RecordBytes& bytes) {
  table.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Files good_files() {
  Files files;
  append_to(files.table, to_bytes(TableHeader{.segment = kSegment, .born = 1}, kSecret));
  for (std::uint32_t i = 0; i < std::size(kSizes); ++i) {
    const std::string bytes = bytes_of(i);
    StoreRecord record{.key = key_of_number(i), .written = 1};
    record.extent = {static_cast<std::uint32_t>(files.data.size()), static_cast<std::uint32_t>(bytes.size()),
                     store_checksum(view_of(bytes), kSecret)};
    append_to(files.table, to_bytes(record, kSegment, i, kSecret));
    files.data += bytes;
  }
  return files;
}

std::string laid_over(std::string good, const std::uint8_t* bytes, std::size_t size, bool as_long) {
  if (as_long) good.resize(size);
  for (std::size_t i = 0; i < size && i < good.size(); ++i) good[i] = static_cast<char>(good[i] ^ bytes[i]);
  return good;
}

std::string signed_table(const std::uint8_t* bytes, std::size_t size, const std::string& data) {
  std::string table;
  append_to(table, to_bytes(TableHeader{.segment = kSegment, .born = 1}, kSecret));
  for (std::uint32_t number = 0; (number + 1) * kRecordChoice <= size; ++number) {
    const std::uint8_t* const choice = bytes + number * kRecordChoice;
    StoreRecord record{.key = key_of_number(choice[0] % 4), .kind = static_cast<CachedKind>(choice[1])};
    record.facts.info.format = static_cast<ImageFormat>(choice[2]);
    record.facts.info.orientation = choice[3];
    std::memcpy(&record.extent.offset, choice + 4, 4);
    std::memcpy(&record.extent.length, choice + 8, 4);
    record.written = choice[12];
    record.dead = choice[13] != 0;
    if (record.extent.offset < data.size()) {
      const auto entry = std::string_view(data).substr(record.extent.offset, record.extent.length);
      record.extent.checksum = store_checksum(std::as_bytes(std::span(entry)), kSecret);
    }
    append_to(table, to_bytes(record, kSegment, number, kSecret));
  }
  return table;
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::unique_ptr<DiskStore> open_store(const std::string& path) {
  auto opened = DiskStore::open({.folder = path, .most = 8_MiB, .seed = kSecret, .read_at = ::pread});
  require(opened.has_value());
  return *std::move(opened);
}

void read_all(DiskStore& store, bool is_signed) {
  std::vector<DiskStore::Listed> entries;
  store.for_each([&](const DiskStore::Listed& entry) { entries.push_back(entry); });
  for (const DiskStore::Listed& entry : entries) {
    const auto placed = store.find(entry.key, entry.kind);
    require(placed.has_value());
    const Result<CachedBytes> bytes = store.read(*placed);
    if (!bytes || is_signed) continue;
    require(entry.key.low < std::size(kSizes) && entry.key == key_of_number(entry.key.low));
    const std::string expected = bytes_of(entry.key.low);
    require(std::ranges::equal((*bytes)->view(), view_of(expected)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TempFolder folder;
  static const std::string path = folder / "cache";
  static const Files good = good_files();
  if (size < 3) return 0;
  const std::uint8_t flags = data[0];
  const std::size_t for_table = std::min<std::size_t>(size - 3, data[1] | data[2] << 8);
  const bool is_signed = (flags & 4) != 0;
  const Files files{is_signed ? signed_table(data + 3, for_table, good.data)
                              : laid_over(good.table, data + 3, for_table, (flags & 1) != 0),
                    laid_over(good.data, data + 3 + for_table, size - 3 - for_table, (flags & 2) != 0)};
  std::filesystem::create_directory(path);
  write_file(path + "/" + table_name(kSegment), files.table);
  write_file(path + "/" + data_name(kSegment), files.data);

  const auto store = open_store(path);
  read_all(*store, is_signed);
  const std::string fresh(700, 'x');
  const DiskStore::Entry entry{{99, 99}, CachedKind::kTensor, {}, view_of(fresh)};
  require(store->write({&entry, 1}).has_value() && store->tend().has_value());
  const auto placed = open_store(path)->find({99, 99}, CachedKind::kTensor);
  require(placed.has_value() && placed->length == fresh.size());
  const auto read = store->read(*store->find({99, 99}, CachedKind::kTensor));
  require(read && std::ranges::equal((*read)->view(), view_of(fresh)));
  store->drop_all();
  require(std::filesystem::is_empty(path));
  return 0;
}
