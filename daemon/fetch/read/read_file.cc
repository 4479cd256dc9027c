#include "daemon/fetch/read/read_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "daemon/fetch/host_shortage.h"

namespace millrace {
namespace {

// As many bytes as there are from `offset` on, up to the room that there is. A read that could have had more and stopped
// `end` bytes behind `offset` has found the file's end: it is not asked again.
Result<std::size_t> fill_from(int fd, std::uint64_t offset, MutableByteView room,
                              std::optional<std::size_t> end = std::nullopt) {
  std::size_t filled = 0;
  while (filled < room.size() && (filled == 0 || filled != end)) {
    const ssize_t got = pread(fd, room.data() + filled, room.size() - filled, static_cast<off_t>(offset + filled));
    if (got == 0) break;
    if (got > 0) {
      filled += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      return io_error("reading the file", errno);
    }
  }
  return filled;
}

Result<EncodedBytes> read_all(int fd, std::size_t expected, Bytes limit, EncodedPool* pool, const MayGrow& may_grow) {
  // One byte more than expected, so that the end is seen without asking for more memory.
  EncodedBytes bytes(expected + 1, pool);
  MILLRACE_TRY(std::size_t size, fill_from(fd, 0, bytes.writable(), expected));
  while (true) {
    if (size > limit.count) return too_large(Bytes{size}, limit);
    if (size < bytes.size()) break;
    const std::uint64_t room = std::min<std::uint64_t>(std::uint64_t{size} * 2, limit.count);
    if (may_grow) MILLRACE_TRY_VOID(may_grow(Bytes{room}));
    EncodedBytes larger(static_cast<std::size_t>(room) + 1, pool);
    std::memcpy(larger.writable().data(), bytes.view().data(), size);
    bytes = std::move(larger);
    MILLRACE_TRY(const std::size_t got, fill_from(fd, size, bytes.writable().subspan(size)));
    size += got;
  }
  bytes.shrink(size);
  return bytes;
}

Error no_such_range(const Dataset::Range& range, std::uint64_t file) {
  return Error{Code::kInvalid,
               "the file has " + to_text(Bytes{file}) + ", and the sample would be " + to_text(range.length) +
                   " from byte " + std::to_string(range.offset) +
                   " on: it has changed since it was listed, or was listed wrongly; list it again and open the dataset "
                   "anew"};
}

}  // namespace

Error too_large(Bytes size, Bytes limit) {
  return Error{Code::kInvalid, to_text_beside(size, limit) + " are over the limit of " + to_text_beside(limit, size) +
                                   " a file (limits.encoded)"};
}

Result<EncodedBytes> read_range(int fd, const Dataset::Range& range, Bytes limit, EncodedPool* pool) {
  if (range.length > limit) return too_large(range.length, limit);
  struct stat status {};
  if (fstat(fd, &status) != 0) return io_error("reading the file", errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (range.offset > size || range.length.count > size - range.offset) return no_such_range(range, size);
  try {
    EncodedBytes bytes(range.length.count, pool);
    MILLRACE_TRY(const std::size_t got, fill_from(fd, range.offset, bytes.writable()));
    if (got < range.length.count) return no_such_range(range, range.offset + got);
    return bytes;
  } catch (const std::bad_alloc&) {
    return no_memory("a file", range.length);
  }
}

Result<EncodedBytes> read_file(const OpenFile& file, Bytes limit, EncodedPool* pool, const MayGrow& may_grow) {
  if (file.size > limit) return too_large(file.size, limit);
  try {
    return read_all(file.fd.get(), file.size.count, limit, pool, may_grow);
  } catch (const std::bad_alloc&) {
    return no_memory("a file", file.size);
  }
}

}  // namespace millrace
