// The clients that were introduced, by number. Each is known for as long as its own connection to the hand-off socket
// lasts, and the connection over which it was introduced; whichever ends first. Numbers are never used again, and begin
// anywhere, so that those of an opener before this one mean nothing here. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "daemon/fetch/open/opener_message.h"
#include "daemon/model/caller.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

// One of the daemon's connections.
enum class ConnectionNumber : std::uint64_t {};

class Callers {
 public:
  // `ends`: the epoll descriptor that tells, with the caller's number, when the caller's connection has ended; outlives
  // this. `most`: callers at a time.
  Callers(int ends, std::size_t most);
  ~Callers();

  // kExhausted: too many.
  Result<OpenerCaller> add(ConnectionNumber introducer, Caller caller, UniqueFd connection) MILLRACE_EXCLUDES(mutex_);
  // null: unknown, or not known any more.
  std::shared_ptr<const Caller> find(OpenerCaller caller) const MILLRACE_EXCLUDES(mutex_);
  void forget(OpenerCaller caller) MILLRACE_EXCLUDES(mutex_);
  void forget_all_of(ConnectionNumber introducer) MILLRACE_EXCLUDES(mutex_);

 private:
  struct Known {
    std::shared_ptr<const Caller> caller;
    UniqueFd connection;  // closed by close_connection()
    ConnectionNumber introducer;
  };

  const int ends_;
  const std::size_t most_;
  mutable Mutex mutex_;
  std::uint64_t next_ MILLRACE_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Known> known_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
