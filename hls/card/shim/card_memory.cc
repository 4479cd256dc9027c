#include "hls/card/shim/card_memory.h"

#include <algorithm>
#include <cerrno>

#include "hls/card/shim/buffer.h"
#include "hls/card/wire.h"

namespace millrace::card {
namespace {

std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 40;

}  // namespace

std::shared_ptr<CardMemory> CardMemory::make(const std::vector<Bank>& banks) {
  std::uint64_t end = 0;
  for (const Bank& bank : banks) {
    if (bank.address > kMostMemory || bank.bytes > kMostMemory || bank.address % kPage != 0) {
      errno = EINVAL;
      return nullptr;
    }
    end = std::max(end, bank.address + bank.bytes);
  }
  if (end == 0) {
    errno = EINVAL;
    return nullptr;
  }
  auto mapping = Mapping::make("card memory", end);
  return mapping == nullptr ? nullptr : std::make_shared<CardMemory>(banks, std::move(mapping));
}

std::optional<std::uint64_t> CardMemory::place(unsigned bank, std::uint64_t bytes) {
  const auto& [start, room] = banks_[bank];
  if (bytes > room) return std::nullopt;
  const std::uint64_t taken = whole_pages(bytes) + kPage;
  std::lock_guard lock(mutex_);
  std::uint64_t at = start;
  for (const auto& [begin, end] : used_[bank]) {
    if (begin - at >= taken) break;
    at = end;
  }
  if (taken > start + room - at) return std::nullopt;
  used_[bank][at] = at + taken;
  return at;
}

void CardMemory::give_back(unsigned bank, std::uint64_t address, std::uint64_t bytes) {
  mapping_->forget(address, whole_pages(bytes));
  std::lock_guard lock(mutex_);
  used_[bank].erase(address);
  buffers_.erase(address);
}

void CardMemory::enter(const std::shared_ptr<Buffer>& buffer) {
  std::lock_guard lock(mutex_);
  buffers_[buffer->address()] = buffer;
}

std::shared_ptr<Buffer> CardMemory::at(std::uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto after = buffers_.upper_bound(address);
  if (after == buffers_.begin()) return nullptr;
  std::shared_ptr<Buffer> buffer = std::prev(after)->second.lock();
  return buffer != nullptr && address - buffer->address() < buffer->bytes() ? buffer : nullptr;
}

std::size_t CardMemory::buffers() const {
  std::lock_guard lock(mutex_);
  return buffers_.size();
}

}  // namespace millrace::card
