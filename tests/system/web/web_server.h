// `millrace web` as a process of a test, and clients that speak HTTP to it by hand. Thread-bound(the test).
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/unique_fd.h"
#include "tests/support/host/process.h"

namespace millrace {

// A connection to 127.0.0.1:port.
inline UniqueFd connected_to(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("no connection to port " + std::to_string(port) + ": " + std::strerror(errno));
  const timeval patience{.tv_sec = 60, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return socket;
}

// false: the peer has closed it.
inline bool sends(const UniqueFd& socket, std::string_view text) {
  return ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

// All that comes until the peer closes.
inline std::string rest_of(const UniqueFd& socket) {
  std::string text;
  char part[65536];
  for (ssize_t got; (got = ::recv(socket.get(), part, sizeof part, 0)) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  return text;
}

struct HttpReply {
  int status = 0;    // 0: no answer came
  std::string head;  // with the status line
  std::string body;
};

inline HttpReply parsed_reply(const std::string& text) {
  const std::size_t end = text.find("\r\n\r\n");
  if (!text.starts_with("HTTP/1.1 ") || end == std::string::npos) return {};
  return {.status = std::stoi(text.substr(9)), .head = text.substr(0, end + 2), .body = text.substr(end + 4)};
}

class WebServer {
 public:
  // Of the daemon at `socket`, which need not be there.
  explicit WebServer(const std::string& socket, std::vector<std::string> options = {"--listen", "127.0.0.1:0"})
      : process_([&] {
          std::vector<std::string> argv{bin_folder() + "/millrace", "web", "--socket", socket};
          argv.insert(argv.end(), options.begin(), options.end());
          return Process::spawn({.argv = std::move(argv)});
        }()) {
    const auto line = process_.wait_for("listening on ");
    if (!line) throw std::runtime_error("millrace web: " + process_.errors());
    const std::size_t colon = line->rfind(':');
    if (line->find("http://") != std::string::npos)
      port_ = static_cast<std::uint16_t>(std::stoul(line->substr(colon + 1)));
  }

  std::uint16_t port() const { return port_; }
  const Process& process() const { return process_; }

  // What a request comes to that is sent as it is.
  HttpReply raw(const std::string& request) const {
    const UniqueFd socket = connected_to(port_);
    sends(socket, request);
    return parsed_reply(rest_of(socket));
  }
  HttpReply get(const std::string& target, const std::string& headers = {}, const std::string& method = "GET") const {
    return raw(method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n");
  }

  // One figure of /metrics, by its name and labels; throws where there is none.
  double figure(const std::string& name) const {
    const std::string page = "\n" + get("/metrics").body;
    const std::size_t at = page.find("\n" + name + " ");
    if (at == std::string::npos) throw std::runtime_error("no figure " + name);
    return std::stod(page.substr(at + name.size() + 2));
  }
  bool has_figure(const std::string& name) const {
    return ("\n" + get("/metrics").body).find("\n" + name + " ") != std::string::npos;
  }

 private:
  Process process_;
  std::uint16_t port_ = 0;
};

}  // namespace millrace
