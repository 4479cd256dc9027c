#include "client/src/wire/turned_away.h"

#include <sys/socket.h>

#include <array>
#include <string_view>

#include "client/src/wire/deadline.h"
#include "client/src/wire/unix_socket.h"

namespace millrace {
inline namespace client {
namespace {

constexpr std::chrono::milliseconds kReplyPatience{1'000};
constexpr std::size_t kFrameHeader = 9;  // length (three bytes), type, flags, stream
constexpr std::uint8_t kGoaway = 7;
constexpr std::size_t kBeforeText = 8;  // last stream, error code

std::optional<std::string> text_of_goaway(std::string_view frames) {
  while (frames.size() >= kFrameHeader) {
    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(frames[i])); };
    const std::size_t length = byte(0) << 16U | byte(1) << 8U | byte(2);
    if (frames.size() - kFrameHeader < length) return std::nullopt;
    const std::string_view payload = frames.substr(kFrameHeader, length);
    if (byte(3) == kGoaway && length > kBeforeText) return std::string(payload.substr(kBeforeText));
    frames.remove_prefix(kFrameHeader + length);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> turned_away(const Address& address) {
  const Deadline deadline = deadline_after(kReplyPatience);
  const auto socket = connect_unix(address.path, SOCK_STREAM, deadline);
  if (!socket) return std::nullopt;
  std::array<char, 1024> bytes{};
  set_timeouts(socket->get(), deadline);
  const ssize_t got = ::recv(socket->get(), bytes.data(), bytes.size(), 0);
  if (got <= 0) return std::nullopt;
  return text_of_goaway({bytes.data(), static_cast<std::size_t>(got)});
}

}  // namespace client
}  // namespace millrace
