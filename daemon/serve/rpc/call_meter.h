// How many gRPC calls each user begins. Beginning one and cancelling it at once costs a client two frames of a few bytes and
// the server a whole call ("HTTP/2 rapid reset", CVE-2023-44487); limits of what is open at once do not see it. So a
// user has a number of calls a second, saved up to kBurst. A session is one call, whatever is sent in it.
//
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "proto/base/mutex.h"

namespace grpc::experimental {
class ServerInterceptorFactoryInterface;
}

namespace millrace {

class CallMeter {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::uint32_t kBurst = 1'000, kPerSecond = 500;

  // Of a call that has just begun. false: its user has begun too many. He then has as many as a second brings once more,
  // so that what ends his calls comes before the next false.
  bool begun(uid_t user, Clock::time_point now = Clock::now()) MILLRACE_EXCLUDES(mutex_);

 private:
  struct Saved {
    double calls;
    Clock::time_point at;
  };

  void forget_the_idle(Clock::time_point now) MILLRACE_REQUIRES(mutex_);

  Mutex mutex_;
  std::map<uid_t, Saved> users_ MILLRACE_GUARDED_BY(mutex_);  // who has not saved up all
};

// Has gRPC tell `begun` of each call that begins, on a thread of gRPC's, with the descriptor of its connection: those of
// every service, gRPC's own and unknown ones excepted. REQUIRES: connections are given to gRPC as descriptors.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> tell_of_calls(
    std::function<void(int socket)> begun);

}  // namespace millrace
