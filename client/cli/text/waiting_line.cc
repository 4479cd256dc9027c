#include "client/cli/text/waiting_line.h"

#include <cstdio>
#include <utility>

#include "client/cli/text/progress.h"

namespace millrace::cli {

WaitingLine::WaitingLine(std::string text) : text_(std::move(text)) {
  if (progress_style(true) == ProgressStyle::kBar) thread_ = std::thread([this] { draw(); });
}

WaitingLine::~WaitingLine() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void WaitingLine::draw() {
  const auto began = std::chrono::steady_clock::now();
  bool drawn = false;
  const MutexLock lock(mutex_);
  for (auto next = began + std::chrono::seconds(1); !over_; next += std::chrono::seconds(1)) {
    while (!over_ && changed_.wait_until(mutex_, next)) continue;
    if (over_) break;
    const auto passed = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began);
    std::fprintf(stderr, "\r%s  %s\x1b[K", text_.c_str(), clock_text(passed).c_str());
    drawn = true;
  }
  if (drawn) std::fputs("\r\x1b[K", stderr);
}

}  // namespace millrace::cli
