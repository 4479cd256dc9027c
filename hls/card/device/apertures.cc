#include "hls/card/device/apertures.h"

#include <sys/mman.h>

namespace millrace::card {

bool Apertures::open(const Window& window) {
  if (window.bytes == 0) return true;
  if (window.address > bytes_ || window.bytes > bytes_ - window.address) return false;
  const std::uint64_t begin = window.address / kPage * kPage;
  const std::uint64_t end = (window.address + window.bytes + kPage - 1) / kPage * kPage;
  std::lock_guard lock(mutex_);
  const auto same = open_.find(begin);
  if (same != open_.end() && same->second == end) return true;
  close_overlaps(begin, end);
  if (!protect(begin, end, PROT_READ | PROT_WRITE)) return false;
  open_[begin] = end;
  return true;
}

void Apertures::close_overlaps(std::uint64_t begin, std::uint64_t end) {
  auto at = open_.upper_bound(begin);
  if (at != open_.begin() && std::prev(at)->second > begin) --at;
  while (at != open_.end() && at->first < end) {
    protect(at->first, at->second, PROT_NONE);
    at = open_.erase(at);
  }
}

bool Apertures::protect(std::uint64_t begin, std::uint64_t end, int access) {
  return mprotect(memory_ + begin, end - begin, access) == 0;
}

}  // namespace millrace::card
