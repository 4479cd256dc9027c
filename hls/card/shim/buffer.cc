#include "hls/card/shim/buffer.h"

#include <sys/mman.h>
#include <xrt_mem.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "hls/card/shim/settings.h"

namespace millrace::card {

std::shared_ptr<Buffer> Buffer::make(std::shared_ptr<CardMemory> memory, void* user, std::size_t bytes,
                                     unsigned flags) {
  const unsigned bank = flags & XRT_BO_FLAGS_MEMIDX_MASK;
  if (bytes == 0 || memory == nullptr || !memory->has_bank(bank)) {
    errno = EINVAL;
    return nullptr;
  }
  const auto address = memory->place(bank, bytes);
  if (!address) {
    errno = ENOMEM;
    return nullptr;
  }
  const std::shared_ptr<Buffer> buffer(new Buffer(bytes, flags));
  buffer->memory_ = std::move(memory);
  buffer->bank_ = bank;
  buffer->address_ = *address;
  if (flags & (XCL_BO_FLAGS_HOST_ONLY | XCL_BO_FLAGS_P2P))
    buffer->host_ = buffer->on_card();
  else if (user != nullptr)
    buffer->host_ = static_cast<std::byte*>(user);
  else if (!(flags & XCL_BO_FLAGS_DEV_ONLY) && !buffer->map_pages())
    return nullptr;
  if (settings().scramble) std::memset(buffer->on_card(), 0xC7, bytes);
  buffer->memory_->enter(buffer);
  return buffer;
}

std::shared_ptr<Buffer> Buffer::make_command(std::size_t bytes, unsigned flags) {
  if (bytes == 0) {
    errno = EINVAL;
    return nullptr;
  }
  std::shared_ptr<Buffer> buffer(new Buffer(bytes, flags));
  return buffer->map_pages() ? buffer : nullptr;
}

Buffer::~Buffer() {
  if (owns_host_) munmap(host_, bytes_);
  if (memory_ != nullptr) memory_->give_back(bank_, address_, bytes_);
}

bool Buffer::map_pages() {
  void* const pages = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  host_ = static_cast<std::byte*>(pages);
  owns_host_ = true;
  return true;
}

int Buffer::copy(Direction direction, std::size_t bytes, std::size_t offset) const {
  if (!has(bytes, offset) || host_ == nullptr) return -EINVAL;
  if (is_command() || host_ == on_card()) return 0;
  const std::size_t copied = settings().copied == 0 ? bytes : std::min<std::size_t>(bytes, settings().copied);
  if (direction == Direction::kToCard)
    std::memcpy(on_card() + offset, host_ + offset, copied);
  else
    std::memcpy(host_ + offset, on_card() + offset, copied);
  return 0;
}

int Buffer::copy_from(const Buffer& other, std::size_t bytes, std::size_t offset, std::size_t other_offset) const {
  if (is_command() || other.is_command() || !has(bytes, offset) || !other.has(bytes, other_offset)) return -EINVAL;
  std::memmove(on_card() + offset, other.on_card() + other_offset, bytes);
  return 0;
}

}  // namespace millrace::card
