// Listening sockets that a service manager made and passed to this process (socket activation, sd_listen_fds(3)). They
// listen while no daemon runs: who connects then waits in the kernel, and is served when one starts. They, and their
// files, are the service manager's; the daemon only accepts.
//
//   of_this_process() ──▶ take(path, type) for each socket of the settings ──▶ check_all_taken()
//
// Thread-bound(main, while the daemon is assembled).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

enum class SocketType : std::uint8_t { kStream, kSeqPacket };

class PassedListeners {
 public:
  // Those of this process's environment, which forgets them. kPrecondition: something passed is no listening Unix
  // socket with a path.
  static Result<PassedListeners> of_this_process();

  // Whether nothing was passed at all: then the daemon makes its own. Does not change when they are taken.
  bool none() const { return none_; }

  // The one that listens at `path`, which does not block and is closed on exec. kPrecondition: there is none, or it is
  // of another type, with what was passed and what to change.
  Result<UniqueFd> take(const std::string& path, SocketType type);

  // kPrecondition: what was passed and nobody wanted, where clients would wait for ever.
  Result<void> check_all_taken() const;

 private:
  struct Listener {
    UniqueFd socket;
    std::string path;
    int type = 0;
  };

  static Result<Listener> look_at(UniqueFd socket, const std::string& name);
  std::string all() const;

  std::vector<Listener> listeners_;
  bool none_ = true;
};

}  // namespace millrace
