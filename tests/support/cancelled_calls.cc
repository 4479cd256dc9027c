#include "tests/support/cancelled_calls.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace millrace {
namespace {

constexpr int kTogether = 64;
constexpr std::size_t kHeard = 4'096;  // bytes of the server's that are kept

enum class Frame : std::uint8_t { kHeaders = 1, kReset = 3, kSettings = 4 };

void append_number(std::string& out, std::uint32_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

// RFC 9113, 4.1.
void append_frame(std::string& out, Frame type, char flags, std::uint32_t stream, std::string_view payload) {
  append_number(out, static_cast<std::uint32_t>(payload.size()), 3);
  out += static_cast<char>(type);
  out += flags;
  append_number(out, stream, 4);
  out += payload;
}

// A field whose name stands in the static table of HPACK (RFC 7541, appendix A); nothing is indexed.
void append_field(std::string& out, std::string_view name_index, std::string_view value) {
  out += name_index;
  out += static_cast<char>(value.size());
  out += value;
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

}  // namespace

CancelledCalls::CancelledCalls(const std::string& socket, std::string method)
    : method_(std::move(method)), socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.data(), socket.size());
  std::string hello = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  append_frame(hello, Frame::kSettings, 0, 0, {});
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || !send_all(hello))
    socket_.reset();
}

bool CancelledCalls::some_more() {
  constexpr char kEndHeaders = 4;
  constexpr std::string_view kCancel("\0\0\0\x8", 4);
  if (!socket_) return false;
  const std::string headers = call_headers(method_);
  std::string bytes;
  for (int i = 0; i < kTogether; ++i, next_stream_ += 2) {
    append_frame(bytes, Frame::kHeaders, kEndHeaders, next_stream_, headers);
    append_frame(bytes, Frame::kReset, 0, next_stream_, kCancel);
  }
  const bool sent = send_all(bytes);
  if (sent) begun_ += kTogether;
  return listen_in() && sent;
}

// Reads while it waits, so that neither side waits for the other.
bool CancelledCalls::send_all(const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      done += static_cast<std::size_t>(sent);
      continue;
    }
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    pollfd ready{.fd = socket_.get(), .events = POLLIN | POLLOUT, .revents = 0};
    ::poll(&ready, 1, 1'000);
    if (!listen_in()) return false;
  }
  return true;
}

bool CancelledCalls::listen_in() {
  std::array<char, 16'384> bytes{};
  while (true) {
    const ssize_t read = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (read < 0) return errno == EAGAIN || errno == EINTR;
    if (read == 0) return false;
    heard_.append(bytes.data(), static_cast<std::size_t>(read));
    if (heard_.size() > kHeard) heard_.erase(0, heard_.size() - kHeard);
  }
}

}  // namespace millrace
