#include "daemon/door/frame_meter.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr std::size_t kRemembered = 256;  // users, before those who have been idle are forgotten
constexpr std::chrono::seconds kLongestPause{1};
constexpr std::chrono::nanoseconds kEach = std::chrono::nanoseconds(std::chrono::seconds(1)) / FrameMeter::kPerSecond;

}  // namespace

std::chrono::nanoseconds FrameMeter::sent(UserId user, std::uint32_t frames, Clock::time_point now) {
  if (paid_.size() >= kRemembered) forget_the_idle(now);
  Clock::time_point& paid = paid_.try_emplace(user, now).first->second;
  paid = std::min(std::max(paid, now) + frames * kEach, now + kBurst * kEach + kLongestPause);
  return std::max<std::chrono::nanoseconds>(paid - now - kBurst * kEach, std::chrono::nanoseconds::zero());
}

void FrameMeter::forget_the_idle(Clock::time_point now) {
  std::erase_if(paid_, [now](const auto& entry) { return entry.second <= now; });
}

}  // namespace millrace
