#include "client/cli/web/listen_at.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

namespace millrace::cli {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr int kBacklog = 512;

Error not_an_address(const std::string& where) {
  return Error{Code::kInvalid, "--listen: must be ADDRESS:PORT or unix:PATH, is " + where};
}

std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

bool is_v6(std::string_view address) {
  return address.size() > 2 && address.front() == '[' && address.back() == ']';
}

Result<boost::asio::ip::tcp::endpoint> endpoint_of(const std::string& where) {
  const std::size_t colon = where.rfind(':');
  if (colon == std::string::npos) return not_an_address(where);
  const std::optional<std::uint16_t> port = port_of(std::string_view(where).substr(colon + 1));
  std::string address = where.substr(0, colon);
  if (address == "localhost") address = "127.0.0.1";
  const bool v6 = is_v6(address);
  if (v6) address = address.substr(1, address.size() - 2);
  boost::system::error_code wrong;
  const auto parsed = boost::asio::ip::make_address(address, wrong);
  if (!port || wrong || parsed.is_v6() != v6) return not_an_address(where);
  return boost::asio::ip::tcp::endpoint(parsed, *port);
}

// "http://127.0.0.1:9464/", with the port that the kernel chose where 0 was asked for.
std::string url_of(int socket) {
  boost::asio::ip::tcp::endpoint bound;
  auto length = static_cast<socklen_t>(bound.capacity());
  if (::getsockname(socket, bound.data(), &length) != 0) return "a socket without a name";
  bound.resize(length);
  const std::string address = bound.address().to_string();
  return "http://" + (bound.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(bound.port()) +
         "/";
}

Result<WebListener> listen_at_port(const std::string& where) {
  MILLRACE_TRY(const boost::asio::ip::tcp::endpoint endpoint, endpoint_of(where));
  UniqueFd socket(::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno_error("making a socket for " + where, errno);
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    return errno_error("listening at " + where, errno);
  std::string name = url_of(socket.get());
  return WebListener(std::move(socket), std::move(name));
}

// Whether somebody listens at this socket. A socket that nobody listens at is left of a server that was killed.
bool is_listened_at(const sockaddr_un& address) {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno != ECONNREFUSED;
}

bool is_socket(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
}

Result<WebListener> listen_at_path(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return Error{Code::kInvalid,
                 "--listen: unix:PATH needs a path of 1 to " + std::to_string(sizeof address.sun_path - 1) + " bytes"};
  std::memcpy(address.sun_path, path.data(), path.size());
  if (is_socket(path) && !is_listened_at(address)) ::unlink(path.c_str());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno_error("making a socket for " + path, errno);
  const mode_t before = ::umask(0117);  // for the user and the group alone
  const int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int why = errno;
  ::umask(before);
  if (bound != 0) return errno_error("listening at " + path, why);
  if (::listen(socket.get(), kBacklog) != 0) return errno_error("listening at " + path, errno);
  return WebListener(std::move(socket), std::string(kUnix) + path, path);
}

int socket_option(int socket, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

}  // namespace

WebListener::WebListener(UniqueFd socket, std::string name, std::string path)
    : socket_(std::move(socket)), name_(std::move(name)), path_(std::move(path)) {}

WebListener::WebListener(WebListener&& other) noexcept
    : socket_(std::move(other.socket_)), name_(std::move(other.name_)), path_(std::exchange(other.path_, {})) {}

WebListener::~WebListener() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<WebListener> listen_at(const std::string& where) {
  return where.starts_with(kUnix) ? listen_at_path(where.substr(kUnix.size())) : listen_at_port(where);
}

Result<std::vector<WebListener>> passed_web_listeners() {
  std::vector<WebListener> passed;
  const int count = sd_listen_fds(1);
  if (count < 0) return errno_error("looking at what the service manager passed ($LISTEN_FDS)", -count);
  for (int i = 0; i < count; ++i) {
    UniqueFd socket(SD_LISTEN_FDS_START + i);
    const int family = socket_option(socket.get(), SO_DOMAIN);
    const bool known = family == AF_UNIX || family == AF_INET || family == AF_INET6;
    if (!known || socket_option(socket.get(), SO_TYPE) != SOCK_STREAM ||
        socket_option(socket.get(), SO_ACCEPTCONN) != 1)
      return Error{Code::kInvalid,
                   "the service manager passed something else than listening stream sockets: see ListenStream= in "
                   "millrace-web.socket"};
    ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
    ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
    std::string name = family == AF_UNIX ? "a Unix socket that was passed" : url_of(socket.get());
    passed.emplace_back(std::move(socket), std::move(name));
  }
  return passed;
}

}  // namespace millrace::cli
