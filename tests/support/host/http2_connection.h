// A connection to a gRPC server that sends the HTTP/2 frames it is told to (RFC 9113), whatever the protocol allows.
// Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "proto/base/unique_fd.h"

namespace millrace {

enum class Http2Frame : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoaway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
  kUnknown = 99,
};
inline constexpr char kHttp2EndStream = 1, kHttp2EndHeaders = 4, kHttp2Padded = 8;

// The client's first bytes, with empty SETTINGS.
std::string http2_preface();
std::string http2_frame(Http2Frame type, char flags, std::uint32_t stream, std::string_view payload);
// The header block of a call of "/package.Service/Method".
std::string call_headers(std::string_view method);
// A message of gRPC's as DATA has it: its length, and as much of it as is given.
std::string grpc_message(std::uint32_t length, std::string_view begin);

class Http2Connection {
 public:
  // Not connected where nobody listens.
  explicit Http2Connection(const std::string& socket);

  // Reads while it waits, so that neither side waits for the other. false: the connection has ended.
  bool send(const std::string& bytes);
  // Reads what has come. false: the connection has ended.
  bool listen_in();
  const std::string& heard() const { return heard_; }  // the last of it

  // DATA of `stream`, as many of the bytes as the server's flow control allows (RFC 9113, 6.9), in one frame; the bytes
  // sent, perhaps none. nullopt: the connection has ended.
  std::optional<std::size_t> send_data(std::uint32_t stream, std::string_view bytes);

 private:
  void take_windows();

  UniqueFd socket_;
  std::string heard_;
  std::string unread_;                                    // of the server's frames the one that is not whole
  std::int64_t first_window_ = 65'535, window_ = 65'535;  // of a new stream; of the connection
  std::map<std::uint32_t, std::int64_t> windows_;         // of streams, beside first_window_
};

}  // namespace millrace
