#include "daemon/memory/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/shared_memory_object.hpp>
#include <cerrno>
#include <string>
#include <utility>

namespace millrace {
namespace {

namespace ipc = boost::interprocess;

// "/millrace-" and 128 random bits: nobody can guess it, or have put something there before.
Result<std::string> random_name() {
  std::array<std::uint8_t, 16> bits{};
  if (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size()))
    return errno_error("asking the kernel for random bits", errno);
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string name = "/millrace-";
  for (const std::uint8_t byte : bits) {
    name += kHex[byte >> 4U];
    name += kHex[byte & 15U];
  }
  return name;
}

struct Descriptors {
  UniqueFd writable;
  UniqueFd read_only;
};

// Without a name at any time, so whenever the daemon is killed, none is left. An error where /dev/shm
// makes no such files: every tmpfs does, a sandbox that imitates one may not.
Result<Descriptors> create_nameless() {
  UniqueFd writable(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!writable) return errno_error("creating a shared-memory object in /dev/shm", errno);
  const std::string again = "/proc/self/fd/" + std::to_string(writable.get());
  UniqueFd read_only(::open(again.c_str(), O_RDONLY | O_CLOEXEC));
  if (!read_only) return errno_error("opening a shared-memory object for reading", errno);
  return Descriptors{std::move(writable), std::move(read_only)};
}

UniqueFd own_copy(const ipc::shared_memory_object& object) {
  return UniqueFd(::fcntl(object.get_mapping_handle().handle, F_DUPFD_CLOEXEC, 3));
}

// Creates, reopens and unlinks: when this returns, in whatever way, no name is left. Boost's objects own their
// descriptors, so both are copied out of them; its exceptions end here.
Result<Descriptors> create_named() {
  MILLRACE_TRY(const std::string name, random_name());
  struct Unlink {
    const std::string& name;
    bool created = false;
    ~Unlink() {
      if (created) ipc::shared_memory_object::remove(name.c_str());
    }
  } unlink{name};
  try {
    const ipc::shared_memory_object writable(ipc::create_only, name.c_str(), ipc::read_write, ipc::permissions(0600));
    unlink.created = true;
    const ipc::shared_memory_object read_only(ipc::open_only, name.c_str(), ipc::read_only);
    Descriptors descriptors{own_copy(writable), own_copy(read_only)};
    if (!descriptors.writable || !descriptors.read_only)
      return errno_error("copying a shared-memory descriptor", errno);
    return descriptors;
  } catch (const ipc::interprocess_exception& error) {
    return errno_error("creating a shared-memory object in /dev/shm", error.get_native_error());
  }
}

// Whatever hinders the first way, the second is tried and says what is wrong if it is hindered, too.
Result<Descriptors> create_object() {
  if (Result<Descriptors> nameless = create_nameless()) return nameless;
  return create_named();
}

struct Room {
  Bytes size;  // 0: mounted without a limit
  Bytes free;
};

Room room_of(int fd) {
  struct statvfs status {};
  if (::fstatvfs(fd, &status) != 0) return {};
  return {Bytes{status.f_blocks} * status.f_frsize, Bytes{status.f_bavail} * status.f_frsize};
}

// `promised`: of the free room, to segments that are being filled.
Error no_room(Bytes wanted, Room room, Bytes promised) {
  const std::string of_which = promised > 0_B ? " (" + to_text(promised) + " of it promised to other sessions)" : "";
  return Error{
      Code::kExhausted,
      "/dev/shm has " + to_text(room.size) + ", " + to_text(room.free) + " free" + of_which +
          "; the session asks for " + to_text(wanted) +
          ": use fewer or smaller slots, or enlarge it (mount -o remount,size=2G /dev/shm; docker run --shm-size=2g)"};
}

Error no_longer_wanted() {
  return Error{Code::kCancelled, "nobody waits for this shared memory any more"};
}

// Takes the pages of `bytes` at `offset` now. Through the mapping first, because huge pages (where /dev/shm is mounted
// with huge=advise) come only that way and no lane has to fault a page in later; what that could not do, or an older
// kernel cannot, fallocate does or says why not. Returns an errno, 0: done.
int fill(int fd, std::byte* data, std::uint64_t offset, std::uint64_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (::madvise(data + offset, bytes, MADV_POPULATE_WRITE) == 0) return 0;
#else
  static_cast<void>(data);
#endif
  int error = 0;
  do {
    error = ::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (error == EINTR);
  return error;
}

// Returns an errno, 0: done.
int resize(int fd, Bytes size) {
  while (::ftruncate(fd, static_cast<off_t>(size.count)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

bool says_no_room(int error) {
  return error == ENOSPC || error == ENOMEM || error == EFBIG;
}

}  // namespace

Segment::Segment(std::byte* data, UniqueFd writable, UniqueFd read_only, Charge charge, PromisedMemory& promised)
    : charge_(std::move(charge)),
      data_(data),
      size_{charge_.amount()},
      writable_(std::move(writable)),
      read_only_(std::move(read_only)),
      promised_(promised) {
  promised_.promise(size_);
}

Result<std::shared_ptr<Segment>> Segment::reserve(Charge charge, PromisedMemory& promised) {
  const Bytes size{charge.amount()};
  MILLRACE_TRY(Descriptors object, create_object());

  const Room room = room_of(object.writable.get());
  const Bytes taken = promised.bytes();
  if (room.size > 0_B && (taken >= room.free || size > room.free - taken)) return no_room(size, room, taken);
  void* const data = ::mmap(nullptr, size.count, PROT_READ | PROT_WRITE, MAP_SHARED, object.writable.get(), 0);
  if (data == MAP_FAILED) return errno_error("mapping shared memory", errno);
  std::shared_ptr<Segment> segment(new Segment(static_cast<std::byte*>(data), std::move(object.writable),
                                               std::move(object.read_only), std::move(charge), promised));

  ::madvise(data, size.count, MADV_HUGEPAGE);  // refused where the host offers none: then there are small ones
  ::madvise(data, size.count, MADV_DONTDUMP);  // no users' pictures in core files
  return segment;
}

Result<std::shared_ptr<Segment>> Segment::create(Charge charge, PromisedMemory& promised, const StopFlag& unwanted) {
  if (unwanted.stopped()) return no_longer_wanted();
  MILLRACE_TRY(std::shared_ptr<Segment> segment, reserve(std::move(charge), promised));
  const Bytes size = segment->size();
  while (segment->filled() < size) {
    if (unwanted.stopped()) return no_longer_wanted();
    MILLRACE_TRY_VOID(segment->fill_to(std::min(size, segment->filled() + 64_MiB)));
  }
  return segment;
}

Result<void> Segment::fill_to(Bytes end) {
  MILLRACE_CHECK(end <= size_);
  const Bytes before = filled();
  if (end <= before) return {};
  const Room room = room_of(writable_.get());
  const Bytes wanted{end.count - before.count};
  int error = resize(writable_.get(), end);
  if (error == 0) error = fill(writable_.get(), data_, before.count, wanted.count);
  if (error != 0) {
    resize(writable_.get(), before);
    if (says_no_room(error)) return no_room(size_, room, {});
    return errno_error("filling shared memory in /dev/shm", error);
  }
  promised_.keep(wanted);
  filled_.store(end.count, std::memory_order_release);
  return {};
}

void Segment::give_up_rest(Bytes keep) {
  MILLRACE_CHECK(keep <= filled());
  resize(writable_.get(), keep);
  promised_.keep({size_.count - filled().count});
  filled_.store(keep.count, std::memory_order_release);
  charge_.shrink_to(keep.count);
  rest_given_up_ = true;
}

// Piece by piece: the kernel holds up each thread that maps memory in this process as long as one munmap takes.
Segment::~Segment() {
  constexpr Bytes kPiece = 64_MiB;
  for (Bytes at; at < size_; at = at + kPiece)
    ::munmap(data_ + at.count, std::min(kPiece, Bytes{size_.count - at.count}).count);
  if (revoked_.load(std::memory_order_relaxed)) resize(writable_.get(), {});
  if (!rest_given_up_) promised_.keep({size_.count - filled().count});
}

}  // namespace millrace
