#include "daemon/backend/cpu/isolation/shared_room.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "daemon/backend/cpu/isolation/decoder_wire.h"

namespace millrace {
namespace {

constexpr std::uint64_t kStep = 1 << 20;

Error no_room(int error) {
  return {Code::kExhausted, errno_error("taking memory to decode in", error).message};
}

}  // namespace

Result<SharedRoom> SharedRoom::create() {
  const UniqueFd fd(memfd_create("millrace-decoding", MFD_CLOEXEC));
  // Above those that the process gets, so that handing one over overwrites no other.
  UniqueFd high(fd ? fcntl(fd.get(), F_DUPFD_CLOEXEC, kDecoderMemory + 1) : -1);
  if (!high) return Error{Code::kUnavailable, errno_error("taking memory to decode in", errno).message};
  return SharedRoom(std::move(high));
}

SharedRoom::SharedRoom(SharedRoom&& other) noexcept
    : fd_(std::move(other.fd_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

void SharedRoom::unmap() {
  if (data_ != nullptr) munmap(data_, size_);
  data_ = nullptr;
}

Result<void> SharedRoom::grow(std::uint64_t bytes) {
  if (bytes <= size_) return {};
  const std::uint64_t size = (bytes + kStep - 1) / kStep * kStep;
  if (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return no_room(errno);
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd_.get(), 0);
  if (memory == MAP_FAILED) return no_room(errno);
  unmap();
  data_ = static_cast<std::uint8_t*>(memory);
  size_ = size;
  return {};
}

Result<void> SharedRoom::write(std::uint64_t at, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return no_room(written < 0 ? errno : ENOSPC);
    at += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

void SharedRoom::shrink(std::uint64_t bytes) {
  if (bytes >= size_) return;
  unmap();
  size_ = 0;
  if (ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0 || bytes == 0) return;
  void* const memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_.get(), 0);
  if (memory == MAP_FAILED) return;  // grow() tries again
  data_ = static_cast<std::uint8_t*>(memory);
  size_ = bytes;
}

}  // namespace millrace
