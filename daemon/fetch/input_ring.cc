#include "daemon/fetch/input_ring.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <string>

#include "daemon/fetch/host_want.h"
#include "daemon/fetch/read_file.h"

namespace millrace {
namespace {

Error wrong(const std::string& what) {
  return Error{Code::kInvalid, "input ring: " + what};
}

Result<void> check_memfd(int fd, Bytes size) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return wrong("must be a memfd");
  if ((seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
    return wrong("must be sealed with F_SEAL_SHRINK and F_SEAL_GROW");
  if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) return wrong("must be open for reading");
  struct stat status {};
  if (fstat(fd, &status) != 0) return io_error("input ring", errno);
  const Bytes actual{static_cast<std::uint64_t>(status.st_size)};
  if (actual != size)
    return wrong("has " + std::to_string(actual.count) + " bytes, announced were " + std::to_string(size.count));
  return {};
}

}  // namespace

Result<std::shared_ptr<const InputRing>> InputRing::create(UniqueFd memfd_untrusted, Bytes size_untrusted,
                                                           Bytes limit) {
  if (size_untrusted.count == 0) return wrong("must have at least one byte");
  if (size_untrusted > limit) {
    return Error{Code::kExhausted, "input ring: " + to_text(size_untrusted) + " are over the limit of " +
                                       to_text(limit) +
                                       ": make it smaller, or raise limits.ring in the daemon's settings"};
  }
  MILLRACE_TRY_VOID(check_memfd(memfd_untrusted.get(), size_untrusted));
  return std::shared_ptr<const InputRing>(new InputRing(std::move(memfd_untrusted), size_untrusted));
}

Result<EncodedBytes> InputRing::copy(std::uint64_t offset_untrusted, std::uint64_t length_untrusted, Bytes limit,
                                     EncodedPool* pool) const {
  if (length_untrusted == 0) return Error{Code::kInvalid, "an empty span of the input ring"};
  if (offset_untrusted > size_.count || length_untrusted > size_.count - offset_untrusted) {
    return Error{Code::kInvalid, "the span at " + std::to_string(offset_untrusted) + " of " +
                                     std::to_string(length_untrusted) + " bytes is not within the input ring of " +
                                     std::to_string(size_.count)};
  }
  if (length_untrusted > limit.count) return too_large(Bytes{length_untrusted}, limit);
  try {
    EncodedBytes bytes(length_untrusted, pool);
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got = pread(memfd_.get(), bytes.writable().data() + done, bytes.size() - done,
                                static_cast<off_t>(offset_untrusted + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return io_error("reading the input ring", errno);
      if (got == 0) return Error{Code::kInternal, "the sealed input ring ended early"};
      done += static_cast<std::size_t>(got);
    }
    return bytes;
  } catch (const std::bad_alloc&) {
    return no_memory("a span of the input ring", Bytes{length_untrusted});
  }
}

}  // namespace millrace
