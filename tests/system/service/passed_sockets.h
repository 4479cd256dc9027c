// The two sockets of a daemon as a service manager holds them: made before the daemon, passed to it, and open when it is
// gone. Thread-bound(the test).
//
//   const PassedSockets sockets;
//   auto client = std::async([&] { return Client::connect(sockets.path(), 30s); });   // waits
//   const Process daemon = sockets.start({"--root", folder});
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/sockets/handoff_path.h"
#include "proto/base/unique_fd.h"
#include "tests/support/host/process.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {

inline sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

// A connection to what listens at `path`; throws when nothing does.
inline UniqueFd connected(const std::string& path, int type) {
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("nobody listens at " + path);
  return socket;
}

class PassedSockets {
 public:
  PassedSockets() : PassedSockets({{"millrace.sock", SOCK_STREAM}, {"millrace.sock.handoff", SOCK_SEQPACKET}}) {}
  // Others than a daemon expects.
  explicit PassedSockets(const std::vector<std::pair<std::string, int>>& names_and_types) {
    for (const auto& [name, type] : names_and_types) listeners_.push_back(listening(folder_ / name, type));
  }

  std::string path() const { return folder_ / "millrace.sock"; }
  const std::string& folder() const { return folder_.path(); }

  // A daemon that gets them, with these further options. It may not be ready yet.
  Process start(std::vector<std::string> options = {}) const {
    std::string script;
    for (std::size_t i = 0; i < listeners_.size(); ++i)
      script += "exec " + std::to_string(3 + i) + "<&" + std::to_string(listeners_[i].get()) + "; ";
    script += "LISTEN_PID=$$ LISTEN_FDS=" + std::to_string(listeners_.size()) + " exec \"$0\" --socket \"$@\"";
    std::vector<std::string> argv{"bash", "-c", script, bin_folder() + "/millraced", path()};
    argv.insert(argv.end(), options.begin(), options.end());
    return Process::spawn({.argv = argv});
  }

 private:
  // Inherited, and above the numbers that the daemon is told of.
  static UniqueFd listening(const std::string& path, int type) {
    constexpr int kAbove = 100;
    const UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    const sockaddr_un address = address_of(path);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket.get(), SOMAXCONN) != 0)
      throw std::runtime_error("cannot listen at " + path);
    return UniqueFd(::fcntl(socket.get(), F_DUPFD, kAbove));
  }

  TempFolder folder_;
  std::vector<UniqueFd> listeners_;
};

}  // namespace millrace
