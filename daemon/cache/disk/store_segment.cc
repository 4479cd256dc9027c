#include "daemon/cache/disk/store_segment.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace millrace {
namespace {

constexpr std::uint32_t kRecordsAtOnce = 4096;  // half a megabyte
constexpr int kTries = 16;                      // of making a segment that nobody takes away
constexpr std::size_t kPieces = 512;            // of one pwritev()

off_t record_at(std::uint32_t number) {
  return static_cast<off_t>(kRecordBytes * (std::uint64_t{number} + 1));
}

std::uint64_t segment_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

bool read_fully(ReadAt read_at, int file, MutableByteView to, std::uint64_t at) {
  while (!to.empty()) {
    const ssize_t count = read_at(file, to.data(), to.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || static_cast<std::size_t>(count) > to.size()) return false;
    to = to.subspan(static_cast<std::size_t>(count));
    at += static_cast<std::uint64_t>(count);
  }
  return true;
}

bool write_fully(int file, ByteView from, std::uint64_t at) {
  while (!from.empty()) {
    const ssize_t count = ::pwrite(file, from.data(), from.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = ENOSPC;
    if (count <= 0) return false;
    from = from.subspan(static_cast<std::size_t>(count));
    at += static_cast<std::uint64_t>(count);
  }
  return true;
}

// What is left of `pieces` behind the first `count` bytes.
std::span<iovec> behind(std::span<iovec> pieces, std::size_t count) {
  while (!pieces.empty() && count >= pieces.front().iov_len) {
    count -= pieces.front().iov_len;
    pieces = pieces.subspan(1);
  }
  if (count > 0) {
    pieces.front().iov_base = static_cast<char*>(pieces.front().iov_base) + count;
    pieces.front().iov_len -= count;
  }
  return pieces;
}

bool write_fully(int file, std::span<iovec> pieces, std::uint64_t at) {
  while (!pieces.empty()) {
    const int some = static_cast<int>(std::min(pieces.size(), kPieces));
    const ssize_t count = ::pwritev(file, pieces.data(), some, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = ENOSPC;
    if (count <= 0) return false;
    pieces = behind(pieces, static_cast<std::size_t>(count));
    at += static_cast<std::uint64_t>(count);
  }
  return true;
}

// Where an entry begins that could begin at `end`.
std::uint64_t begin_of(std::uint64_t end, std::size_t length) {
  return length < kLargeStored ? end : align_up(Bytes{end}, kStoreBlock).count;
}

bool take_lock(const UniqueFd& table) {
  struct stat status {};
  return ::flock(table.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(table.get(), &status) == 0 && status.st_nlink > 0;
}

Result<std::uint64_t> size_of(const UniqueFd& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return errno_error("looking at a segment", errno);
  return static_cast<std::uint64_t>(status.st_size);
}

SegmentId random_id() {
  std::uint64_t id = segment_time();
  static_cast<void>(::getrandom(&id, sizeof id, GRND_NONBLOCK) == sizeof id);
  return SegmentId{id};
}

}  // namespace

std::uint64_t StoreSegment::room_for(std::size_t length) {
  return length + (length < kLargeStored ? 0 : kStoreBlock - 1);
}

Result<std::shared_ptr<StoreSegment>> StoreSegment::create(const Shared& shared) {
  for (int i = 0; i < kTries; ++i) {
    const SegmentId id = random_id();
    std::shared_ptr<StoreSegment> segment(new StoreSegment(shared, id, segment_time()));
    Result<UniqueFd> table = shared.folder.open_file(table_name(id), O_RDWR | O_CREAT | O_EXCL);
    if (!table && table.error().code == Code::kPrecondition) continue;
    if (!table) return table.error();
    // Somebody who looks for what was left behind half made may have been faster.
    if (!take_lock(*table)) continue;
    segment->lock_ = *std::move(table);
    const RecordBytes header = to_bytes(TableHeader{.segment = id, .born = segment->born_}, shared.seed);
    if (!write_fully(segment->lock_.get(), header, 0)) {
      const Error error = errno_error("writing " + shared.folder.path() + "/" + table_name(id), errno);
      segment->remove();
      return error;
    }
    Result<UniqueFd> data = shared.folder.open_file(data_name(id), O_RDWR | O_CREAT | O_EXCL);
    if (!data) {
      segment->remove();
      return data.error();
    }
    segment->data_ = *std::move(data);
    return segment;
  }
  return Error{Code::kInternal, "no segment could be made in " + shared.folder.path()};
}

Result<std::shared_ptr<StoreSegment>> StoreSegment::open(const Shared& shared, SegmentId id) {
  MILLRACE_TRY(const UniqueFd table, shared.folder.open_file(table_name(id), O_RDONLY));
  MILLRACE_TRY(const std::uint64_t size, size_of(table));
  const Error unsound{Code::kInvalid, shared.folder.path() + "/" + table_name(id) + " is not sound"};
  if (size < kRecordBytes || size / kRecordBytes > kMostRecords + 1) return unsound;
  RecordBytes bytes{};
  if (!read_fully(shared.read_at, table.get(), bytes, 0))
    return Error{Code::kUnavailable, shared.folder.path() + "/" + table_name(id) + " cannot be read"};
  const std::optional<TableHeader> header = read_table_header(bytes, id, shared.seed);
  if (!header) return unsound;
  const Result<UniqueFd> data = shared.folder.open_file(data_name(id), O_RDONLY);
  if (!data) return data.error().code == Code::kNotFound ? unsound : data.error();
  return std::shared_ptr<StoreSegment>(new StoreSegment(shared, id, header->born));
}

void StoreSegment::remove_unsound(const StoreFolder& folder, SegmentId id) {
  const Result<UniqueFd> table = folder.open_file(table_name(id), O_RDONLY);
  if (table ? !take_lock(*table) : table.error().code != Code::kNotFound) return;
  folder.remove(data_name(id));
  folder.remove(table_name(id));
}

Result<void> StoreSegment::read(std::uint32_t offset, MutableByteView to) const {
  MILLRACE_TRY(const UniqueFd data, open_data(O_RDONLY));
  if (read_fully(shared_.read_at, data.get(), to, offset)) return {};
  return Error{Code::kUnavailable, shared_.folder.path() + "/" + data_name(id_) + " cannot be read there"};
}

Result<UniqueFd> StoreSegment::open_table(int flags) const {
  return shared_.folder.open_file(table_name(id_), flags);
}

Result<UniqueFd> StoreSegment::open_data(int flags) const {
  return shared_.folder.open_file(data_name(id_), flags);
}

Result<void> StoreSegment::visit_new(const Visit& visit_record) {
  // The table's size first: what it tells of is in the data file already.
  const auto table_status = shared_.folder.status(table_name(id_)), data_status = shared_.folder.status(data_name(id_));
  if (!table_status || !data_status)
    return Error{Code::kNotFound, "a file of segment " + data_name(id_) + " is gone from " + shared_.folder.path()};
  const std::uint64_t size = table_status->size;
  data_end_ = data_status->size;
  const std::uint64_t all = size < kRecordBytes ? 0 : size / kRecordBytes - 1;
  const auto to = static_cast<std::uint32_t>(std::min<std::uint64_t>(all, kMostRecords));
  if (to < records_) sound_ = false;  // it was cut
  if (to <= records_) return {};
  MILLRACE_TRY(const UniqueFd table, open_table(O_RDONLY));
  MILLRACE_TRY_VOID(visit(table, records_, to, [&](std::uint32_t number, std::optional<StoreRecord> record) {
    if (record && record->extent.offset + std::uint64_t{record->extent.length} > data_end_) record.reset();
    if (!record) sound_ = false;
    visit_record(number, record);
  }));
  records_ = to;
  return {};
}

Result<void> StoreSegment::visit_again(const Visit& visit_record) const {
  MILLRACE_TRY(const UniqueFd table, open_table(O_RDONLY));
  return visit(table, 0, records_, visit_record);
}

Result<void> StoreSegment::visit(const UniqueFd& table, std::uint32_t from, std::uint32_t to,
                                 const Visit& visit_record) const {
  std::vector<std::byte> bytes;
  while (from < to) {
    const std::uint32_t count = std::min(to - from, kRecordsAtOnce);
    bytes.resize(count * kRecordBytes);
    if (!read_fully(shared_.read_at, table.get(), bytes, static_cast<std::uint64_t>(record_at(from))))
      return Error{Code::kUnavailable, shared_.folder.path() + "/" + table_name(id_) + " cannot be read"};
    for (std::uint32_t i = 0; i < count; ++i) {
      const RecordView record(bytes.data() + i * kRecordBytes, kRecordBytes);
      visit_record(from + i, read_record(record, id_, from + i, shared_.seed));
    }
    from += count;
  }
  return {};
}

bool StoreSegment::lock() {
  if (lock_) return true;
  Result<UniqueFd> table = open_table(O_RDWR);
  if (!table) table = open_table(O_RDONLY);  // enough to remove it
  if (!table || !take_lock(*table)) return false;
  lock_ = *std::move(table);
  return true;
}

void StoreSegment::unlock() {
  data_.reset();
  lock_.reset();
}

Result<void> StoreSegment::append(std::span<Item> items) {
  if (!data_) {
    Result<UniqueFd> data = open_data(O_RDWR);
    if (!data) sound_ = false;
    MILLRACE_TRY(data_, std::move(data));
  }
  const std::uint64_t data_end = data_end_;
  Result<void> written = write_data(items);
  if (written) written = write_records(items);
  if (written) {
    records_ += static_cast<std::uint32_t>(items.size());
    return {};
  }
  data_end_ = data_end;
  const bool undone =
      ::ftruncate(lock_.get(), record_at(records_)) == 0 && ::ftruncate(data_.get(), static_cast<off_t>(data_end)) == 0;
  if (!undone) sound_ = false;
  return written;
}

Result<void> StoreSegment::write_data(std::span<Item> items) {
  static constexpr std::array<std::byte, kStoreBlock> kZeroes{};
  const std::uint64_t begin = data_end_;
  std::uint64_t end = begin;
  std::vector<iovec> pieces;
  pieces.reserve(2 * items.size());
  for (Item& item : items) {
    const std::uint64_t offset = begin_of(end, item.bytes.size());
    if (offset > end) pieces.push_back({const_cast<std::byte*>(kZeroes.data()), offset - end});
    pieces.push_back({const_cast<std::byte*>(item.bytes.data()), item.bytes.size()});
    item.record.extent = {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(item.bytes.size()),
                          store_checksum(item.bytes, shared_.seed)};
    end = offset + item.bytes.size();
  }
  if (!write_fully(data_.get(), pieces, begin))
    return errno_error("writing " + shared_.folder.path() + "/" + data_name(id_), errno);
  data_end_ = end;
  return {};
}

Result<void> StoreSegment::write_records(std::span<const Item> items) {
  std::vector<std::byte> bytes;
  bytes.reserve(items.size() * kRecordBytes);
  for (const Item& item : items) {
    const auto number = records_ + static_cast<std::uint32_t>(bytes.size() / kRecordBytes);
    const RecordBytes record = to_bytes(item.record, id_, number, shared_.seed);
    bytes.insert(bytes.end(), record.begin(), record.end());
  }
  if (!write_fully(lock_.get(), bytes, static_cast<std::uint64_t>(record_at(records_))))
    return errno_error("writing " + shared_.folder.path() + "/" + table_name(id_), errno);
  return {};
}

Result<void> StoreSegment::mark_dead(std::span<const std::uint32_t> numbers) {
  MILLRACE_TRY(const UniqueFd table, open_table(O_WRONLY));
  constexpr std::byte kDead{1};
  for (const std::uint32_t number : numbers) {
    if (!write_fully(table.get(), ByteView(&kDead, 1), static_cast<std::uint64_t>(record_at(number)) + kDeadAt))
      return errno_error("writing " + shared_.folder.path() + "/" + table_name(id_), errno);
  }
  return {};
}

Result<void> StoreSegment::mark_used(std::span<const Use> uses) {
  MILLRACE_TRY(const UniqueFd table, open_table(O_WRONLY));
  for (const Use& use : uses) {
    const ByteView bytes = std::as_bytes(std::span(&use.used, 1));
    if (!write_fully(table.get(), bytes, static_cast<std::uint64_t>(record_at(use.number)) + kUsedAt))
      return errno_error("writing " + shared_.folder.path() + "/" + table_name(id_), errno);
  }
  return {};
}

void StoreSegment::punch(std::vector<StoredExtent>& extents) const {
  const Result<UniqueFd> data = open_data(O_WRONLY);
  if (!data) return;
  std::ranges::sort(extents, {}, &StoredExtent::offset);
  for (std::size_t i = 0; i < extents.size();) {
    const std::uint64_t offset = extents[i].offset;
    std::uint64_t end = offset;
    // Neighbours are one, so that small ones make holes as well.
    while (i < extents.size() && extents[i].offset == end) end += extents[i++].length;
    const std::uint64_t begin = align_up(Bytes{offset}, kStoreBlock).count, blocks = end / kStoreBlock * kStoreBlock;
    // Where there are no holes, the whole segment goes when most of it is dead.
    if (begin < blocks)
      static_cast<void>(::fallocate(data->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                                    static_cast<off_t>(blocks - begin)) == 0);
  }
}

std::uint64_t StoreSegment::look_up_taken() {
  taken_ = 0;
  for (const std::string& name : {data_name(id_), table_name(id_)}) {
    if (const auto status = shared_.folder.status(name)) taken_ += status->taken;
  }
  return taken_;
}

bool StoreSegment::is_removed() const {
  return !shared_.folder.status(data_name(id_)) || !shared_.folder.status(table_name(id_));
}

void StoreSegment::remove() {
  shared_.folder.remove(data_name(id_));
  shared_.folder.remove(table_name(id_));
  unlock();
}

}  // namespace millrace
