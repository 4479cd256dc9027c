// A session's last looks, and ten minutes of plots. Its memory does not grow. Thread-bound(control).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/observe/explain/looks.h"

namespace millrace {

// The last kLooks of a kind, the oldest first.
template <class Look>
class LastLooks {
 public:
  static constexpr std::size_t kLooks = 21;  // a second apart: findings look back over 20 s

  void add(const Look& look) {
    newest_ = (newest_ + 1) % kLooks;
    looks_[newest_] = look;
    size_ = std::min(size_ + 1, kLooks);
  }
  bool empty() const { return size_ == 0; }
  const Look& newest() const { return looks_[newest_]; }                                  // REQUIRES: !empty()
  const Look& oldest() const { return looks_[(newest_ + 1 + kLooks - size_) % kLooks]; }  // REQUIRES: !empty()
  // The one closest to that time. REQUIRES: !empty()
  const Look& nearest(SessionStates::Clock::time_point at) const {
    const Look* found = &newest();
    for (std::size_t i = 1; i < size_; ++i) {
      const Look& one = looks_[(newest_ + kLooks - i) % kLooks];
      if (std::chrono::abs(one.at - at) < std::chrono::abs(found->at - at)) found = &one;
    }
    return *found;
  }

 private:
  std::array<Look, kLooks> looks_{};
  std::size_t newest_ = kLooks - 1, size_ = 0;
};

class SessionHistory {
 public:
  static constexpr std::size_t kPlotted = 600;  // seconds

  explicit SessionHistory(const SessionLook& opened) { looks_.add(opened); }

  void add(const SessionLook& look);  // a second after the one before
  const SessionLook& oldest() const { return looks_.oldest(); }

  // Of each second, the oldest first. `waited`: the program's, as a share of it.
  std::vector<float> images_per_second() const;
  std::vector<float> waited() const;

 private:
  LastLooks<SessionLook> looks_;
  std::array<float, kPlotted> images_{};
  std::array<std::uint8_t, kPlotted> waited_{};  // of 255
  std::size_t next_ = 0, plotted_ = 0;
};

}  // namespace millrace
