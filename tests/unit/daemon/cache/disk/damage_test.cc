// The store on disk, damaged in every way that can be thought of: what is wrong is a miss, and all else is there.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <thread>

#include "tests/support/host/descriptor_limit.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/cache/disk/rig.h"

namespace millrace {
namespace {

constexpr std::uint64_t kDamagedEntries = 3;

std::size_t size_of_entry(std::uint64_t number) {
  return 150 + 10 * number;
}

// A store of one segment with a few small entries, and its files' bytes.
struct SmallStore {
  SmallStore() {
    const auto store = open_store(path);
    for (std::uint64_t i = 0; i < kDamagedEntries; ++i) put_entry(*store, i, size_of_entry(i), CachedKind::kIndex);
    table_path = files_of(path, ".mrt").front();
    data_path = files_of(path, ".mrc").front();
    table = contents_of(table_path);
    data = contents_of(data_path);
  }

  // How many entries are there when the files are these.
  std::uint64_t entries_with(const std::string& table_bytes, const std::string& data_bytes) const {
    write_contents(table_path, table_bytes);
    write_contents(data_path, data_bytes);
    const auto store = open_store(path);
    std::uint64_t there = 0;
    for (std::uint64_t i = 0; i < kDamagedEntries; ++i)
      there += has_entry(*store, i, size_of_entry(i), CachedKind::kIndex) ? 1 : 0;
    put_entry(*store, 1000, 300, CachedKind::kIndex);
    if (!has_entry(*store, 1000, 300, CachedKind::kIndex)) FAIL("a damaged store takes nothing new");
    store->drop_all();
    return there;
  }

  const std::string& either(bool table_wanted) const { return table_wanted ? table_path : data_path; }

  const TempFolder folder;
  const std::string path = store_in(folder);
  std::string table_path, data_path, table, data;
};

std::string with_record(const std::string& table, SegmentId segment, std::uint32_t number, const StoreRecord& record) {
  const RecordBytes bytes = to_bytes(record, segment, number, kStoreSeed);
  std::string changed = table;
  std::memcpy(changed.data() + (number + 1) * kRecordBytes, bytes.data(), bytes.size());
  return changed;
}

std::string hex_of(ByteView bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    for (const int shift : {4, 0}) text += "0123456789abcdef"[std::to_integer<int>(byte) >> shift & 15];
  }
  return text;
}

SegmentId id_of(const std::string& path) {
  return read_file_name(std::filesystem::path(path).filename().string())->segment;
}

ssize_t fail_to_read(int, void*, std::size_t, off_t) {
  errno = EIO;
  return -1;
}

ssize_t fail_large_reads(int file, void* to, std::size_t count, off_t at) {
  if (count != 20'000) return ::pread(file, to, count, at);
  errno = EIO;
  return -1;
}

ssize_t read_in_small_pieces(int file, void* to, std::size_t count, off_t at) {
  static thread_local unsigned calls = 0;
  if (++calls % 3 == 0) {
    errno = EINTR;
    return -1;
  }
  return ::pread(file, to, std::min<std::size_t>(count, 777), at);
}

}  // namespace

TEST_CASE("header and record are the bytes of the worked example", "[cache]") {
  constexpr std::uint64_t kSecret = 0x0706050403020100;
  constexpr SegmentId kSegment{0x0123456789abcdef};
  const std::string_view mill = "mill";
  StoreRecord record{.key = {0xfedcba9876543210, 0x0123456789abcdef},
                     .kind = CachedKind::kPacked,
                     .facts = {.info = {.stored = {640, 480}, .orientation = 6, .has = {.passes = true}},
                               .contents = 1,
                               .tensor_of = 2,
                               .dataset = 7,
                               .sample = 3,
                               .saves = 0.5F,
                               .costs = 0.25F},
                     .extent = {4096, 4, store_checksum(std::as_bytes(std::span(mill)), kSecret)},
                     .written = 0x1122334455667799,
                     .used = 0x68000000};

  const RecordBytes header = to_bytes(TableHeader{.segment = kSegment, .born = 0x1122334455667788}, kSecret);
  const RecordBytes bytes = to_bytes(record, kSegment, 0, kSecret);

  REQUIRE(hex_of(ByteView(header).first(40)) ==
          "4d5253544f52450a0100000080000000efcdab896745230188776655443322115f7348fb3e1122c7");
  REQUIRE(hex_of(bytes) ==
          "1032547698badcfeefcdab896745230100100000000000000400000001000608"
          "80020000e0010000000000000000000000000000000000000100000000000000"
          "02000000000000000700000000000000030000000000003f0000803e00000000"
          "9977665544332211aaf0f4ab85f524c0255cf725749935ad0000006800000000");
  const auto read = read_record(bytes, kSegment, 0, kSecret);
  REQUIRE(read->facts == record.facts);
  REQUIRE_FALSE(read_record(bytes, kSegment, 1, kSecret));
  REQUIRE_FALSE(read_record(bytes, SegmentId{1}, 0, kSecret));
  REQUIRE_FALSE(read_record(bytes, kSegment, 0, kSecret + 1));
}

TEST_CASE("a store with any one byte changed loses one entry at most, or its segment by the header", "[cache]") {
  const SmallStore small;
  for (const int mask : {0x01, 0xFF}) {
    for (std::size_t at = 0; at < small.table.size(); ++at) {
      std::string table = small.table;
      table[at] = static_cast<char>(table[at] ^ mask);
      CAPTURE(mask, at);
      REQUIRE(small.entries_with(table, small.data) + (at < 40 ? kDamagedEntries : 1) >= kDamagedEntries);
    }
    for (std::size_t at = 0; at < small.data.size(); ++at) {
      std::string data = small.data;
      data[at] = static_cast<char>(data[at] ^ mask);
      CAPTURE(mask, at);
      REQUIRE(small.entries_with(small.table, data) == kDamagedEntries - 1);
    }
  }
}

TEST_CASE("a store that was cut anywhere has what lies before the cut", "[cache]") {
  const SmallStore small;
  for (std::size_t length = 0; length <= small.table.size(); ++length) {
    const std::size_t records = length < kRecordBytes ? 0 : length / kRecordBytes - 1;
    CAPTURE(length);
    REQUIRE(small.entries_with(small.table.substr(0, length), small.data) == records);
  }
  for (std::size_t length = 0; length <= small.data.size(); ++length) {
    std::size_t end = 0, entries = 0;
    while (entries < kDamagedEntries && end + size_of_entry(entries) <= length) end += size_of_entry(entries++);
    CAPTURE(length);
    REQUIRE(small.entries_with(small.table, small.data.substr(0, length)) == entries);
  }
}

TEST_CASE("what stands behind the end of a store's files, or in place of them, harms nothing", "[cache]") {
  const SmallStore small;

  REQUIRE(small.entries_with(small.table + std::string(1000, 'x'), small.data + std::string(1000, 'x')) ==
          kDamagedEntries);
  REQUIRE(small.entries_with(small.data, small.table) == 0);
  REQUIRE(small.entries_with(small.table, std::string(small.data.size(), '\0')) == 0);
  REQUIRE(small.entries_with("", "") == 0);
}

TEST_CASE("segments whose files were exchanged give nothing", "[cache]") {
  const TempFolder folder;
  const std::string path = store_in(folder);
  {
    const auto one = open_store(path), other = open_store(path);
    put_entry(*one, 1, 500);
    put_entry(*other, 2, 500);
  }
  const auto tables = files_of(path, ".mrt"), data = files_of(path, ".mrc");
  REQUIRE(tables.size() == 2);
  const auto exchange = [&](const std::vector<std::string>& files) {
    const std::string first = contents_of(files[0]), second = contents_of(files[1]);
    write_contents(files[0], second);
    write_contents(files[1], first);
  };
  SECTION("tables") {
    exchange(tables);
  }
  SECTION("data") {
    exchange(data);
  }
  SECTION("both") {
    exchange(tables);
    exchange({std::filesystem::path(tables[0]).replace_extension(".mrc"),
              std::filesystem::path(tables[1]).replace_extension(".mrc")});
  }
  const auto store = open_store(path);

  REQUIRE_FALSE(has_entry(*store, 1, 500));
  REQUIRE_FALSE(has_entry(*store, 2, 500));
}

TEST_CASE("records that somebody signed who knows the secret crash nothing", "[cache]") {
  const SmallStore small;
  const SegmentId segment = id_of(small.table_path);
  const StoreRecord good =
      *read_record(RecordView(reinterpret_cast<const std::byte*>(small.table.data()) + kRecordBytes, kRecordBytes),
                   segment, 0, kStoreSeed);
  std::vector<StoreRecord> lies(10, good);
  lies[0].extent.offset = 0xFFFFFF00;
  lies[1].extent.length = 0xFFFFFFFF;
  lies[2].extent.length = 0;
  lies[3].kind = static_cast<CachedKind>(3);
  lies[4].facts.info.format = static_cast<ImageFormat>(kImageFormats);
  lies[5].facts.info.orientation = 0;
  lies[6].facts.info.orientation = 9;
  lies[7].extent.length = static_cast<std::uint32_t>(small.data.size()) + 1;

  lies[8].facts.saves = std::numeric_limits<float>::quiet_NaN();
  lies[9].facts.costs = std::numeric_limits<float>::infinity();

  for (const StoreRecord& lie : lies)
    REQUIRE(small.entries_with(with_record(small.table, segment, 0, lie), small.data) == kDamagedEntries - 1);
  // One that says another's bytes are its own: they are, by its word, but not twice.
  StoreRecord other = good;
  other.key = numbered_key(2);
  other.written += 1'000'000'000'000;
  write_contents(small.table_path, with_record(small.table, segment, 0, other));
  write_contents(small.data_path, small.data);
  const auto store = open_store(small.path);
  REQUIRE(store->find(numbered_key(2), CachedKind::kIndex)->length == size_of_entry(0));
  REQUIRE_FALSE(store->find(numbered_key(0), CachedKind::kIndex));
}

TEST_CASE("a table that claims more records than one may have is removed, and not read", "[cache]") {
  const SmallStore small;
  std::filesystem::resize_file(small.table_path, std::uint64_t{1} << 40);

  const auto store = open_store(small.path);

  REQUIRE(store->extent().entries == 0);
  REQUIRE(files_of(small.path, "").empty());
}

TEST_CASE("a store that was written with another secret is emptied", "[cache]") {
  const SmallStore small;

  const auto store = DiskStore::open({.folder = small.path, .most = 64_MiB, .seed = kStoreSeed + 1});

  REQUIRE((*store)->extent().entries == 0);
  REQUIRE(files_of(small.path, "").empty());
}

TEST_CASE("halves of segments that a crash left are removed", "[cache]") {
  const SmallStore small;
  write_contents(small.path + "/" + data_name(SegmentId{1}), "data without a table");
  write_contents(small.path + "/" + table_name(SegmentId{2}), "");
  const RecordBytes header = to_bytes(TableHeader{.segment = SegmentId{3}, .born = 1}, kStoreSeed);
  write_contents(small.path + "/" + table_name(SegmentId{3}),
                 {reinterpret_cast<const char*>(header.data()), header.size()});
  write_contents(small.path + "/somebody's", "other file");

  const auto store = open_store(small.path);

  REQUIRE(files_of(small.path, "").size() == 3);
  REQUIRE(store->extent().entries == kDamagedEntries);
}

TEST_CASE("a read that fails is a miss, and the entry is forgotten", "[cache]") {
  const TempFolder folder;
  {
    const auto store = open_store(store_in(folder));
    put_entry(*store, 1, 20'000);
    put_entry(*store, 2, 1000);
  }
  const auto store = open_store(store_in(folder), 64_MiB, fail_large_reads);
  const auto placed = store->find(numbered_key(1), CachedKind::kPacked);
  REQUIRE(placed);

  REQUIRE_FALSE(store->read(*placed));

  REQUIRE_FALSE(store->find(numbered_key(1), CachedKind::kPacked));
  REQUIRE(has_entry(*store, 2, 1000));
  REQUIRE(store->extent().entries == 1);
}

TEST_CASE("want of descriptors is a miss, and no verdict on the entry", "[cache]") {
  const TempFolder folder;
  const auto store = open_store(store_in(folder));
  put_entry(*store, 1, 20'000);
  const auto placed = store->find(numbered_key(1), CachedKind::kPacked);
  const auto [read, verified] = [&] {
    const DescriptorLimit limit = DescriptorLimit::none();
    return std::pair(store->read(*placed), store->verify({}));
  }();

  REQUIRE(read.error().code == Code::kExhausted);
  REQUIRE(verified.entries == 1);
  REQUIRE(verified.wrong == 0);
  REQUIRE(has_entry(*store, 1, 20'000));
}

TEST_CASE("a folder whose tables cannot be read now keeps them", "[cache]") {
  const SmallStore small;
  REQUIRE(open_store(small.path, 64_MiB, fail_to_read)->extent().entries == 0);

  REQUIRE(open_store(small.path)->extent().entries == kDamagedEntries);
}

TEST_CASE("reads that are interrupted or come in pieces are whole in the end", "[cache]") {
  const TempFolder folder;
  put_entry(*open_store(store_in(folder)), 1, 20'000);

  REQUIRE(has_entry(*open_store(store_in(folder), 64_MiB, read_in_small_pieces), 1, 20'000));
}

TEST_CASE("a segment that is cut while it is being read gives whole entries or none", "[cache]") {
  const TempFolder folder;
  const auto store = open_store(store_in(folder));
  put_entry(*store, 1, 8 << 20);
  const auto placed = store->find(numbered_key(1), CachedKind::kPacked);
  const std::string data = files_of(store_in(folder), ".mrc").front();
  const std::vector<std::byte> expected = entry_bytes(1, 8 << 20);
  std::atomic<bool> reading = true;
  std::thread reader([&] {
    for (int i = 0; i < 50; ++i) {
      const auto bytes = store->read(*placed);
      if (bytes && !std::ranges::equal((*bytes)->view(), expected)) std::abort();
    }
    reading = false;
  });
  for (std::uintmax_t length = 8 << 20; reading; length = length > 4096 ? length - 4096 : 8 << 20)
    std::filesystem::resize_file(data, length);
  reader.join();

  REQUIRE_FALSE(store->read(*placed));
  put_entry(*store, 2, 1000);
  REQUIRE(has_entry(*store, 2, 1000));
}

TEST_CASE("links are never followed, and files with a second name never used", "[cache]") {
  const SmallStore small;
  const std::string elsewhere = small.folder / "elsewhere";
  SECTION("a folder that is a link") {
    std::filesystem::rename(small.path, elsewhere);
    std::filesystem::create_directory_symlink(elsewhere, small.path);

    REQUIRE(DiskStore::open({.folder = small.path, .most = 1_MiB, .seed = kStoreSeed}).error().code == Code::kDenied);
  }
  SECTION("a table or data that is a link") {
    const std::string file = small.either(GENERATE(true, false));
    std::filesystem::rename(file, elsewhere);
    std::filesystem::create_symlink(elsewhere, file);
    const std::string before = contents_of(elsewhere);

    const auto store = open_store(small.path);
    REQUIRE(store->extent().entries == 0);
    put_entry(*store, 1, 1000);
    REQUIRE(contents_of(elsewhere) == before);
  }
  SECTION("a table or data with two names") {
    std::filesystem::create_hard_link(small.either(GENERATE(true, false)), elsewhere);

    REQUIRE(open_store(small.path)->extent().entries == 0);
    REQUIRE(std::filesystem::exists(elsewhere));
  }
  SECTION("a folder in a table's place") {
    std::filesystem::remove(small.table_path);
    std::filesystem::create_directory(small.table_path);

    REQUIRE(open_store(small.path)->extent().entries == 0);
  }
  SECTION("a pipe in a table's place") {
    std::filesystem::remove(small.table_path);
    REQUIRE(::mkfifo(small.table_path.c_str(), 0600) == 0);

    REQUIRE(open_store(small.path)->extent().entries == 0);
  }
}

TEST_CASE("what belongs to somebody else is not used", "[cache]") {
  if (::geteuid() != 0) return skip_loudly("somebody else's store (needs root to make one)");
  const SmallStore small;
  SECTION("the folder") {
    REQUIRE(::chown(small.path.c_str(), 65534, 65534) == 0);

    REQUIRE(DiskStore::open({.folder = small.path, .most = 1_MiB, .seed = kStoreSeed}).error().code == Code::kDenied);
  }
  SECTION("a file") {
    REQUIRE(::chown(small.either(GENERATE(true, false)).c_str(), 65534, 65534) == 0);

    REQUIRE(open_store(small.path)->extent().entries == 0);
  }
}

TEST_CASE("the store's folder and files are for this user alone", "[cache]") {
  const SmallStore small;
  std::filesystem::permissions(small.path, std::filesystem::perms::all);

  open_store(small.path);

  REQUIRE(std::filesystem::status(small.path).permissions() == std::filesystem::perms::owner_all);
  using std::filesystem::perms;
  for (const std::string& file : files_of(small.path, ""))
    REQUIRE(std::filesystem::status(file).permissions() == (perms::owner_read | perms::owner_write));
}

TEST_CASE("a store without a folder to be in is refused with the reason", "[cache]") {
  const TempFolder folder;
  write_contents(folder / "file", "");

  const auto missing = DiskStore::open({.folder = folder / "missing/cache", .most = 1_MiB});
  const auto file = DiskStore::open({.folder = folder / "file", .most = 1_MiB});

  REQUIRE(missing.error().code == Code::kNotFound);
  REQUIRE_THAT(missing.error().message, Catch::Contains("missing/cache"));
  REQUIRE(file.error().code == Code::kDenied);
}

}  // namespace millrace
