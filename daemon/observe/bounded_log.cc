#include "daemon/observe/bounded_log.h"

#include <algorithm>

#include "daemon/observe/log.h"

namespace millrace {
namespace {

constexpr std::chrono::seconds kBetweenLines{10};

}  // namespace

void SeldomLine::warn(std::string_view text, Clock::time_point now) {
  ++unsaid_;
  if (said_ && now - *said_ < kBetweenLines) return;
  std::string line(text);
  if (unsaid_ > 1) line += " (" + std::to_string(unsaid_) + " times since the last such line)";
  log_warning(line);
  said_ = now;
  unsaid_ = 0;
}

bool SeldomLine::quiet(Clock::time_point now) const {
  return unsaid_ == 0 && (!said_ || now - *said_ >= kBetweenLines);
}

void SeldomLineByUser::warn(std::uint32_t user, std::string_view text, Clock::time_point now) {
  std::erase_if(lines_, [&](const auto& entry) { return entry.first != user && entry.second.quiet(now); });
  lines_[user].warn(text, now);
}

void LinesByUser::say(LogLevel level, std::uint32_t user, std::string_view text, Clock::time_point now) {
  if (!logs(level)) return;
  auto found = allowances_.find(user);
  if (found == allowances_.end()) {
    forget_quiet_users(now);
    found = allowances_.emplace(user, Allowance{.since = now}).first;
  }
  Allowance& mine = found->second;
  const auto earned = static_cast<std::uint32_t>(std::min<std::int64_t>((now - mine.since) / kBetween, kAtOnce));
  mine.lines = std::min(kAtOnce, mine.lines + earned);
  mine.since += earned * kBetween;
  if (mine.lines == kAtOnce) mine.since = now;  // nothing is saved beyond that
  if (mine.lines == 0) {
    ++mine.unsaid;
    return;
  }
  --mine.lines;
  std::string line(text);
  if (mine.unsaid > 0) line += " (" + std::to_string(mine.unsaid) + " lines about this user are left out before it)";
  if (mine.lines == 0) line += " (further lines about this user are left out for now)";
  mine.unsaid = 0;
  log_line(level, line);
}

// Those who have their whole allowance again, and nothing left out.
void LinesByUser::forget_quiet_users(Clock::time_point now) {
  std::erase_if(allowances_, [&](const auto& entry) {
    return entry.second.unsaid == 0 && now - entry.second.since >= kAtOnce * kBetween;
  });
}

}  // namespace millrace
