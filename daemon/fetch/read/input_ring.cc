#include "daemon/fetch/read/input_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <string>

#include "daemon/fetch/host_shortage.h"
#include "daemon/fetch/open/open_at.h"
#include "daemon/fetch/read/read_file.h"

namespace millrace {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error failed(const std::string& doing) {
  return errno_error("input ring: " + doing, errno);
}

}  // namespace

Result<NewInputRing> SealedRing::create(Bytes size_untrusted, Bytes limit) {
  if (size_untrusted.count == 0) return Error{Code::kInvalid, "input ring: must have at least one byte"};
  if (size_untrusted > limit) {
    return Error{Code::kExhausted, "input ring: " + to_text_beside(size_untrusted, limit) + " are over the limit of " +
                                       to_text_beside(limit, size_untrusted) +
                                       ": make it smaller, or raise limits.ring in the daemon's settings"};
  }
  UniqueFd clients(memfd_create("millrace-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!clients) return failed("making it");
  if (ftruncate(clients.get(), static_cast<off_t>(size_untrusted.count)) != 0) return failed("sizing it");
  if (fcntl(clients.get(), F_ADD_SEALS, kSeals) != 0) return failed("sealing it");
  UniqueFd ours = reopen(clients.get(), O_RDONLY | O_CLOEXEC);
  if (!ours) return failed("opening it for reading");
  return NewInputRing{std::shared_ptr<const InputRing>(new SealedRing(std::move(ours), size_untrusted)),
                      std::move(clients)};
}

Result<EncodedBytes> SealedRing::copy(std::uint64_t offset_untrusted, std::uint64_t length_untrusted, Bytes limit,
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
