#include "kernels/cpu/jpeg/restart_intervals.h"

#include <cstring>

#include "kernels/cpu/jpeg/unstuff.h"

namespace millrace::kernels::jpeg {
namespace {

constexpr int kRst0 = 0xD0, kRst7 = 0xD7;

}  // namespace

bool ends_scan(int code) {
  return code > 0 && code != 0xFF && (code < kRst0 || code > kRst7);
}

bool RestartIntervals::skip_to(std::int64_t number) {
  while (number_ < number) {
    const MarkerPlace marker = find_marker(left_, target_);
    if (!pass(marker.at, marker.code)) return false;
  }
  return true;
}

std::optional<std::size_t> RestartIntervals::take(std::uint8_t* out) {
  const Unstuffed unstuffed = unstuff(left_, out, target_);
  if (!pass(unstuffed.consumed, unstuffed.marker)) return std::nullopt;
  return unstuffed.size;
}

// Behind the marker of the interval at hand. The one that ends the scan stays.
bool RestartIntervals::pass(std::size_t at, int code) {
  const bool last = ++number_ == count_;
  if (last ? !ends_scan(code) : code != kRst0 + (number_ - 1) % 8) return false;
  left_ = left_.subspan(last ? at : at + 2);
  return true;
}

bool RestartIntervals::has_end() const {
  std::size_t size = left_.size();
  while (size >= 2) {
    const void* const found = memrchr(left_.data(), 0xFF, size - 1);
    if (found == nullptr) return false;
    const auto at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - left_.data());
    if (ends_scan(left_[at + 1])) return true;
    size = at + 1;
  }
  return false;
}

}  // namespace millrace::kernels::jpeg
