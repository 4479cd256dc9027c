#include "tests/support/host/http2_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace millrace {
namespace {

constexpr std::size_t kHeard = 4'096;  // bytes of the server's that are kept

void append_number(std::string& out, std::uint32_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

std::uint32_t number_in(const std::string& text, std::size_t at, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value = value << 8 | static_cast<std::uint8_t>(text[at + static_cast<std::size_t>(i)]);
  return value;
}

// A field whose name stands in the static table of HPACK (RFC 7541, appendix A); nothing is indexed.
void append_field(std::string& out, std::string_view name_index, std::string_view value) {
  out += name_index;
  out += static_cast<char>(value.size());
  out += value;
}

}  // namespace

std::string http2_preface() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + http2_frame(Http2Frame::kSettings, 0, 0, {});
}

// RFC 9113, 4.1.
std::string http2_frame(Http2Frame type, char flags, std::uint32_t stream, std::string_view payload) {
  std::string out;
  append_number(out, static_cast<std::uint32_t>(payload.size()), 3);
  out += static_cast<char>(type);
  out += flags;
  append_number(out, stream, 4);
  out += payload;
  return out;
}

std::string call_headers(std::string_view method) {
  std::string fields("\x83\x86", 2);  // :method POST, :scheme http
  append_field(fields, "\x04", method);
  append_field(fields, "\x01", "localhost");
  append_field(fields, "\x0f\x10", "application/grpc");
  fields += std::string("\0\2te", 4);
  append_field(fields, "", "trailers");
  return fields;
}

std::string grpc_message(std::uint32_t length, std::string_view begin) {
  std::string out(1, '\0');  // not compressed
  append_number(out, length, 4);
  out += begin;
  return out;
}

Http2Connection::Http2Connection(const std::string& socket)
    : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.data(), socket.size());
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      !send(http2_preface()))
    socket_.reset();
}

bool Http2Connection::send(const std::string& bytes) {
  if (!socket_) return false;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      done += static_cast<std::size_t>(sent);
      continue;
    }
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      listen_in();  // what it was told last
      return false;
    }
    pollfd ready{.fd = socket_.get(), .events = POLLIN | POLLOUT, .revents = 0};
    ::poll(&ready, 1, 1'000);
    if (!listen_in()) return false;
  }
  return true;
}

bool Http2Connection::listen_in() {
  std::array<char, 16'384> bytes{};
  while (socket_) {
    const ssize_t read = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (read < 0) return errno == EAGAIN || errno == EINTR;
    if (read == 0) return false;
    heard_.append(bytes.data(), static_cast<std::size_t>(read));
    if (heard_.size() > kHeard) heard_.erase(0, heard_.size() - kHeard);
    unread_.append(bytes.data(), static_cast<std::size_t>(read));
    take_windows();
  }
  return false;
}

std::optional<std::size_t> Http2Connection::send_data(std::uint32_t stream, std::string_view bytes) {
  constexpr std::int64_t kFrame = 16'384;
  if (!listen_in()) return std::nullopt;
  const std::int64_t most = std::min({kFrame, window_, first_window_ + windows_[stream]});
  if (most <= 0) return 0;
  bytes = bytes.substr(0, static_cast<std::size_t>(most));
  window_ -= static_cast<std::int64_t>(bytes.size());
  windows_[stream] -= static_cast<std::int64_t>(bytes.size());
  if (!send(http2_frame(Http2Frame::kData, 0, stream, bytes))) return std::nullopt;
  return bytes.size();
}

void Http2Connection::take_windows() {
  constexpr std::size_t kHead = 9, kSetting = 6;
  constexpr std::uint32_t kInitialWindow = 4;
  while (unread_.size() >= kHead && unread_.size() >= kHead + number_in(unread_, 0, 3)) {
    const std::size_t length = number_in(unread_, 0, 3);
    const auto type = static_cast<Http2Frame>(unread_[3]);
    const std::uint32_t stream = number_in(unread_, 5, 4);
    if (type == Http2Frame::kWindowUpdate) (stream == 0 ? window_ : windows_[stream]) += number_in(unread_, kHead, 4);
    for (std::size_t at = kHead; type == Http2Frame::kSettings && at < kHead + length; at += kSetting)
      if (number_in(unread_, at, 2) == kInitialWindow) first_window_ = number_in(unread_, at + 2, 4);
    unread_.erase(0, kHead + length);
  }
}

}  // namespace millrace
