// The other end of sd_notify(3): a socket as a service manager has it, for a daemon whose $NOTIFY_SOCKET it is.
// Thread-bound(the test).
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

#include "proto/base/unique_fd.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {

class NotifySocket {
 public:
  NotifySocket() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    const bool made = path_.size() < sizeof address.sun_path &&
                      ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                      ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0;
    if (!made) throw std::runtime_error("no socket at " + path_);
  }

  const std::string& path() const { return path_; }

  // The next message, as soon as it is there: lines of NAME=VALUE. Throws after 30 seconds without any.
  std::string next() const {
    std::array<char, 4096> text;
    const ssize_t size = ::recv(socket_.get(), text.data(), text.size(), 0);
    if (size < 0) throw std::runtime_error("nobody tells the service manager anything");
    return std::string(text.data(), static_cast<std::size_t>(size));
  }

  // Whether one is there that nobody has taken yet.
  bool has_more() const {
    char byte;
    return ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
  }

 private:
  TempFolder folder_;
  const std::string path_ = folder_ / "notify";
  const UniqueFd socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

}  // namespace millrace
