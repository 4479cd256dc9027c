#include "daemon/serve/handoff/exported_rooms.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

bool ExportedRooms::watches(const BorrowingProcess& process) const {
  const auto watched = process.fd ? all_->watched.find(process.pid) : all_->watched.end();
  return watched != all_->watched.end() && !millrace::has_ended(watched->second.descriptor.native_handle());
}

void ExportedRooms::keep(ExportedTo exported) {
  if (!exported.process.fd) {
    exported.given_back = false;  // nobody can say later whose it was
    return add(all_->for_ever, std::move(exported));
  }
  const bool is_nobodys = exported.given_back && exported.room->is_lost();
  if (is_nobodys || exported.process.has_ended()) return;
  const pid_t pid = exported.process.pid;
  // A number may belong to another process by now, if its end has not come round yet.
  if (const auto old = all_->watched.find(pid); old != all_->watched.end()) {
    if (!millrace::has_ended(old->second.descriptor.native_handle())) {
      exported.process.fd.reset();  // one is enough
      exported.of_process = {};
      return add(old->second.exported, std::move(exported));
    }
    all_->watched.erase(old);
  }
  const int pidfd = exported.process.fd.release();
  Watched& watched = all_->watched.try_emplace(pid, control_, pidfd).first->second;
  const bool is_counted = exported.of_process.amount() != 0;  // else its last one was exported again meanwhile
  watched.of_process =
      is_counted ? std::move(exported.of_process) : exported.account->take(Resource::kExportProcesses, 1);
  add(watched.exported, std::move(exported));
  watched.descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                [all = std::weak_ptr(all_), pid](const boost::system::error_code& error) {
                                  const auto alive = all.lock();
                                  if (!error && alive) alive->watched.erase(pid);
                                });
}

// As a room that may be exported again, or as the room's share alone.
void ExportedRooms::add(std::vector<ExportedTo>& to, ExportedTo exported) {
  exported.share = exported.room->share();
  const auto rooms = std::count_if(to.begin(), to.end(), [](const ExportedTo& one) { return one.room != nullptr; });
  std::optional<Charge> of_room;
  if (exported.given_back && static_cast<std::size_t>(rooms) < kMostRoomsOfOne)
    of_room = exported.account->try_charge(Resource::kExportRooms, 1);
  if (of_room) {
    exported.of_room = *std::move(of_room);
  } else {
    exported.room.reset();
  }
  to.push_back(std::move(exported));
}

void ExportedRooms::drop_lost() {
  for (auto& [pid, watched] : all_->watched)
    std::erase_if(watched.exported, [](const ExportedTo& one) { return one.room && one.room->is_lost(); });
  std::erase_if(all_->watched, [](const auto& entry) { return entry.second.exported.empty(); });
}

std::optional<ExportedTo> ExportedRooms::take_again(BorrowingProcess& process, UserId user, const TensorMemory& memory,
                                                    Bytes charged) {
  const auto watched = process.fd ? all_->watched.find(process.pid) : all_->watched.end();
  if (watched == all_->watched.end() || millrace::has_ended(watched->second.descriptor.native_handle()))
    return std::nullopt;
  std::vector<ExportedTo>& exported = watched->second.exported;
  const auto found = std::find_if(exported.begin(), exported.end(), [&](const ExportedTo& one) {
    return one.room && one.account->owner().user == user && one.memory == &memory &&
           one.charge.amount() == charged.count && one.room.use_count() == 1 && !one.room->is_lost();
  });
  if (found == exported.end()) return std::nullopt;
  ExportedTo again = std::move(*found);
  exported.erase(found);
  if (exported.empty()) {
    again.of_process = std::move(watched->second.of_process);
    all_->watched.erase(watched);
  }
  again.process = std::move(process);
  again.of_room = {};
  again.given_back = false;
  return again;
}

}  // namespace millrace
