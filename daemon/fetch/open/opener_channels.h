// Connections to an opener for one purpose, each for one request at a time. What a reply is late for is remembered:
// nothing else is asked over that connection before. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "daemon/fetch/open/opener_message.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class OpenerChannels {
 public:
  OpenerChannels(std::string socket, std::size_t most, std::chrono::milliseconds patience)
      : socket_(std::move(socket)), most_(most), patience_(patience) {}

  struct Channel {
    UniqueFd socket;
    OpenerNumber awaited{};  // of a reply that is late
    bool taken = false;
  };

  // One to ask over, which is the caller's until give_back() or drop(). kUnavailable: nobody listens; or replies are
  // late, and enough threads wait for more of them.
  Result<Channel*> take() MILLRACE_EXCLUDES(mutex_);
  // `awaited`: kNone, or the number of a reply that has not come.
  void give_back(Channel* channel, OpenerNumber awaited) MILLRACE_EXCLUDES(mutex_);
  // It is broken.
  void drop(Channel* channel) MILLRACE_EXCLUDES(mutex_);

 private:
  struct Seen {
    Channel* idle = nullptr;
    std::size_t taken = 0, late = 0;
  };

  Seen look() MILLRACE_REQUIRES(mutex_);
  Result<UniqueFd> connect() const;

  const std::string socket_;
  const std::size_t most_;
  const std::chrono::milliseconds patience_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Channel>> channels_ MILLRACE_GUARDED_BY(mutex_);
};

// Waits for a reply until there is one, or the connection has ended (true), or `patience` has passed. By poll(2): what
// wakes threads that sleep in receiving (door/sleep_breaker.h) passes them by.
bool wait_for_reply(int socket, std::chrono::milliseconds patience);

// The largest reply, and one byte more that shows one that is too long.
std::vector<std::byte> room_for_reply();

}  // namespace millrace
