#include "daemon/serve/lent_memory.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

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
  if (!lent.process.fd) return all_->for_ever.push_back(std::move(lent));
  if (lent.process.has_ended()) return;
  const pid_t pid = lent.process.pid;
  // A number may belong to another process by now, if its end has not come round yet.
  if (const auto old = all_->watched.find(pid); old != all_->watched.end()) {
    if (!millrace::has_ended(old->second.descriptor.native_handle())) {
      lent.process.fd.reset();  // one is enough
      return old->second.lent.push_back(std::move(lent));
    }
    all_->watched.erase(old);
  }
  const int pidfd = lent.process.fd.release();
  Watched& watched = all_->watched.try_emplace(pid, control_, pidfd).first->second;
  watched.lent.push_back(std::move(lent));
  watched.descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                [all = std::weak_ptr(all_), pid](const boost::system::error_code& error) {
                                  const auto alive = all.lock();
                                  if (!error && alive) alive->watched.erase(pid);
                                });
}

}  // namespace millrace
