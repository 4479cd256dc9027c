#include "daemon/opener/callers.h"

#include <sys/epoll.h>
#include <sys/random.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "daemon/door/peer.h"

namespace millrace {
namespace {

// In the upper half: the lower one is left to the server's own events on the same epoll descriptor.
std::uint64_t anywhere() {
  std::uint64_t number = 0;
  static_cast<void>(::getrandom(&number, sizeof number, 0));
  return (number >> 2U) | (std::uint64_t{1} << 63U);
}

}  // namespace

Callers::Callers(int ends, std::size_t most) : ends_(ends), most_(most), next_(anywhere()) {}

Callers::~Callers() {
  for (auto& [number, known] : known_) close_connection(std::move(known.connection));
}

Result<OpenerCaller> Callers::add(ConnectionNumber introducer, Caller caller, UniqueFd connection) {
  MutexLock lock(mutex_);
  if (known_.size() >= most_)
    return Error{Code::kExhausted, "the opener knows " + std::to_string(most_) +
                                       " clients, as many as its descriptors allow: raise its limit (LimitNOFILE= in "
                                       "the unit, or ulimit -n)"};
  const std::uint64_t number = next_++;
  epoll_event end{};
  end.events = EPOLLRDHUP | EPOLLONESHOT;
  end.data.u64 = number;
  if (::epoll_ctl(ends_, EPOLL_CTL_ADD, connection.get(), &end) != 0)
    return errno_error("watching a client's connection", errno);
  known_.emplace(number, Known{std::make_shared<const Caller>(std::move(caller)), std::move(connection), introducer});
  return OpenerCaller{number};
}

std::shared_ptr<const Caller> Callers::find(OpenerCaller caller) const {
  MutexLock lock(mutex_);
  const auto found = known_.find(static_cast<std::uint64_t>(caller));
  return found == known_.end() ? nullptr : found->second.caller;
}

void Callers::forget(OpenerCaller caller) {
  UniqueFd connection;
  {
    MutexLock lock(mutex_);
    const auto found = known_.find(static_cast<std::uint64_t>(caller));
    if (found == known_.end()) return;
    connection = std::move(found->second.connection);
    known_.erase(found);
  }
  static_cast<void>(::epoll_ctl(ends_, EPOLL_CTL_DEL, connection.get(), nullptr));  // the daemon has it open as well
  close_connection(std::move(connection));
}

void Callers::forget_all_of(ConnectionNumber introducer) {
  std::vector<std::uint64_t> theirs;
  {
    MutexLock lock(mutex_);
    for (const auto& [number, known] : known_) {
      if (known.introducer == introducer) theirs.push_back(number);
    }
  }
  for (const std::uint64_t number : theirs) forget(OpenerCaller{number});
}

}  // namespace millrace
