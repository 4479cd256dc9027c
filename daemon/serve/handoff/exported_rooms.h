// Devices' memory that clients may have mapped, after their sessions: nothing takes it back from a process, so it stays
// charged until the process has ended. Where nobody can say which process it is, a client of another PID namespace, it
// stays charged as long as the daemon runs. What a process says that it uses no more, its next session may have: of that
// the process alone has the harm if it lied. What went with its device as well is forgotten.
//
// Thread-bound(control).
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/memory/tensor_memory.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

struct BorrowingProcess {
  pid_t pid = 0;  // 0: it cannot be told
  UniqueFd fd;    // a pidfd of it; none for 0

  bool has_ended() const;  // REQUIRES: fd

  // Of the client at a connection, while it has it. kUnavailable: it has ended. kExhausted, kInternal: it cannot be watched.
  static Result<BorrowingProcess> of(pid_t pid);
};

// What was exported, and to whom.
struct ExportedTo {
  BorrowingProcess process;
  Charge charge;
  Charge of_process{};                         // empty: it was watched already
  std::shared_ptr<Account> account = nullptr;  // shared: the charges', too
  const TensorMemory* memory = nullptr;
  std::shared_ptr<TensorRoom> room = nullptr;   // shared: see MadeArena
  Charge of_room{};                             // where nobody has it, and its process may have it again
  std::shared_ptr<const void> share = nullptr;  // of it; all that is left of one that nobody will have again
  bool given_back = false;                      // by its process
};

class ExportedRooms {
 public:
  static constexpr std::size_t kMostRoomsOfOne = 4;  // that a process may have again, a descriptor each

  explicit ExportedRooms(boost::asio::io_context& control) : control_(control) {}
  ExportedRooms(const ExportedRooms&) = delete;
  ExportedRooms& operator=(const ExportedRooms&) = delete;

  // Whether it counts among the processes that are watched (Resource::kExportProcesses).
  bool watches(const BorrowingProcess& process) const;

  // Until its process has ended, or has it again.
  void keep(ExportedTo exported);

  // Forgets what was given back and has gone with its device: nobody has it any more.
  void drop_lost();

  // What was exported to that user's process before, so much of that memory, that it has given back and no batch uses: exported to
  // it again. `process` moves in then.
  std::optional<ExportedTo> take_again(BorrowingProcess& process, UserId user, const TensorMemory& memory,
                                       Bytes charged);

 private:
  struct Watched {
    Watched(boost::asio::io_context& control, int pidfd) : descriptor(control, pidfd) {}
    boost::asio::posix::stream_descriptor descriptor;
    Charge of_process;
    std::vector<ExportedTo> exported;
  };
  struct All {
    std::map<pid_t, Watched> watched;
    std::vector<ExportedTo> for_ever;
  };

  static void add(std::vector<ExportedTo>& to, ExportedTo exported);

  boost::asio::io_context& control_;
  const std::shared_ptr<All> all_ = std::make_shared<All>();  // handlers that wait hold it weakly
};

}  // namespace millrace
