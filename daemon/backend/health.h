// Whether a backend's device is there. A backend tells it when it changes, so that nobody has to ask.
//
//   (ready at first) ──lost, with why──▶ lost ──ready──▶ ready ──▶ ...
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "proto/base/mutex.h"

namespace millrace {

struct Health {
  enum class State : std::uint8_t { kReady, kLost };

  State state = State::kReady;
  std::string why;  // of kLost, for people: "fell off the bus"
};

using HealthListener = std::function<void(const Health&)>;

// A backend's health and who is told of it. Thread-safe; the listener is called on the thread that brings the news, no
// lock being held. News in order are the business of the backend that brings them.
class HealthNews {
 public:
  // From here on `listener` is told, and at once if the device is lost already. nullptr: nobody is.
  void listen(HealthListener listener) MILLRACE_EXCLUDES(mutex_) {
    Health now;
    {
      MutexLock lock(mutex_);
      listener_ = listener;
      now = health_;
    }
    if (listener && now.state == Health::State::kLost) listener(now);
  }

  // Nothing where it is so already.
  void lost(std::string why) { tell({Health::State::kLost, std::move(why)}); }
  void ready() { tell({Health::State::kReady, {}}); }

  bool is_lost() const MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return health_.state == Health::State::kLost;
  }

 private:
  void tell(Health news) MILLRACE_EXCLUDES(mutex_) {
    HealthListener listener;
    {
      MutexLock lock(mutex_);
      if (health_.state == news.state) return;
      health_ = news;
      listener = listener_;
    }
    if (listener) listener(news);
  }

  mutable Mutex mutex_;
  Health health_ MILLRACE_GUARDED_BY(mutex_);
  HealthListener listener_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
