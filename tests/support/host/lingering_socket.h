// A TCP socket of this machine whose close() sleeps: it has unsent data and SO_LINGER. Its owner's end is
// harmless. Thread-bound(the test).
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "proto/base/unique_fd.h"

namespace millrace {

class LingeringSocket {
 public:
  static constexpr int kSeconds = 120;  // that the last close() sleeps

  LingeringSocket() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_.get(), at, length) != 0 || ::listen(listener_.get(), 1) != 0 ||
        ::getsockname(listener_.get(), at, &length) != 0 || ::connect(socket_.get(), at, length) != 0)
      throw std::runtime_error("cannot make a TCP connection on the loopback");
    reader_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));  // and never reads
    const std::array<char, 65'536> bytes{};
    while (::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    linger(kSeconds);
  }
  ~LingeringSocket() {
    if (socket_) linger(0);
  }
  LingeringSocket(const LingeringSocket&) = delete;
  LingeringSocket& operator=(const LingeringSocket&) = delete;

  int fd() const { return socket_.get(); }
  UniqueFd release() { return std::move(socket_); }  // the thread that closes it sleeps, unless the reader goes first

 private:
  void linger(int seconds) {
    const ::linger wanted{1, seconds};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &wanted, sizeof wanted);
  }

  UniqueFd listener_;
  UniqueFd socket_;
  UniqueFd reader_;
};

}  // namespace millrace
