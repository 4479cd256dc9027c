// Devices' memory that clients may have mapped, after their sessions: nothing takes it back from a process, so it stays
// charged until the process has ended. Where nobody can say which process it is, a client of another PID namespace, it
// stays charged as long as the daemon runs.
//
// Thread-bound(control).
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "daemon/admit/ledger.h"
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

// What was lent, and to whom.
struct LentTo {
  BorrowingProcess process;
  Charge charge;
  std::shared_ptr<const void> room;  // shared: see MadeArena
};

class LentMemory {
 public:
  static constexpr std::size_t kMostProcesses = 128;  // a descriptor each

  explicit LentMemory(boost::asio::io_context& control) : control_(control) {}
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  // kExhausted: kMostProcesses are watched already.
  Result<void> check_room() const;

  // Until its process has ended.
  void keep(LentTo lent);

 private:
  struct Watched {
    Watched(boost::asio::io_context& control, int pidfd) : descriptor(control, pidfd) {}
    boost::asio::posix::stream_descriptor descriptor;
    std::vector<LentTo> lent;
  };
  struct All {
    std::map<pid_t, Watched> watched;
    std::vector<LentTo> for_ever;
  };

  boost::asio::io_context& control_;
  const std::shared_ptr<All> all_ = std::make_shared<All>();  // handlers that wait hold it weakly
};

}  // namespace millrace
