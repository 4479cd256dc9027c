#include "daemon/serve/lent_memory.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace millrace {
namespace {

bool has_ended(int pidfd) {
  pollfd process{.fd = pidfd, .events = POLLIN};
  return ::poll(&process, 1, 0) > 0;
}

}  // namespace

bool BorrowingProcess::has_ended() const {
  return millrace::has_ended(fd.get());
}

Result<BorrowingProcess> BorrowingProcess::of(pid_t pid) {
  if (pid <= 0) return BorrowingProcess{};
  BorrowingProcess process{.pid = pid, .fd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)))};
  if (process.fd) return process;
  if (errno == ESRCH) return Error{Code::kUnavailable, "the client's process has ended"};
  return errno_error("watching the client's process", errno);
}

Result<void> LentMemory::check_room() const {
  if (all_->watched.size() < kMostProcesses) return {};
  return Error{Code::kExhausted,
               std::to_string(kMostProcesses) +
                   " processes may still have GPU memory of sessions that are closed: end some of them"};
}

void LentMemory::keep(LentTo lent) {
  if (!lent.process.fd) return add(all_->for_ever, std::move(lent));
  if (lent.process.has_ended()) return;
  const pid_t pid = lent.process.pid;
  // A number may belong to another process by now, if its end has not come round yet.
  if (const auto old = all_->watched.find(pid); old != all_->watched.end()) {
    if (!millrace::has_ended(old->second.descriptor.native_handle())) {
      lent.process.fd.reset();  // one is enough
      return add(old->second.lent, std::move(lent));
    }
    all_->watched.erase(old);
  }
  const int pidfd = lent.process.fd.release();
  Watched& watched = all_->watched.try_emplace(pid, control_, pidfd).first->second;
  add(watched.lent, std::move(lent));
  watched.descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                [all = std::weak_ptr(all_), pid](const boost::system::error_code& error) {
                                  const auto alive = all.lock();
                                  if (!error && alive) alive->watched.erase(pid);
                                });
}

// As a room that may be lent again, or as the room's share alone.
void LentMemory::add(std::vector<LentTo>& to, LentTo lent) const {
  const auto rooms_in = [](const std::vector<LentTo>& some) {
    return static_cast<std::size_t>(
        std::count_if(some.begin(), some.end(), [](const LentTo& one) { return one.room != nullptr; }));
  };
  std::size_t rooms = 0;
  for (const auto& [pid, watched] : all_->watched) rooms += rooms_in(watched.lent);
  const bool may_come_again = lent.given_back && !lent.room->is_lost() && &to != &all_->for_ever;
  lent.share = lent.room->share();
  if (!may_come_again || rooms >= kMostRooms || rooms_in(to) >= kMostRoomsOfOne) lent.room.reset();
  to.push_back(std::move(lent));
}

std::optional<LentTo> LentMemory::take_again(BorrowingProcess& process, UserId user, const TensorMemory& memory,
                                             Bytes charged) {
  const auto watched = process.fd ? all_->watched.find(process.pid) : all_->watched.end();
  if (watched == all_->watched.end() || millrace::has_ended(watched->second.descriptor.native_handle()))
    return std::nullopt;
  std::vector<LentTo>& lent = watched->second.lent;
  const auto found = std::find_if(lent.begin(), lent.end(), [&](const LentTo& one) {
    return one.room && one.user == user && one.memory == &memory && one.charge.amount() == charged.count &&
           one.room.use_count() == 1 && !one.room->is_lost();
  });
  if (found == lent.end()) return std::nullopt;
  LentTo again = std::move(*found);
  lent.erase(found);
  if (lent.empty()) all_->watched.erase(watched);
  again.process = std::move(process);
  again.given_back = false;
  return again;
}

}  // namespace millrace
