#include "tests/support/host/cancelled_calls.h"

#include <utility>

namespace millrace {
namespace {

constexpr int kTogether = 64;

}  // namespace

CancelledCalls::CancelledCalls(const std::string& socket, std::string method)
    : method_(std::move(method)), connection_(socket) {}

bool CancelledCalls::some_more() {
  constexpr std::string_view kCancel("\0\0\0\x8", 4);
  const std::string headers = call_headers(method_);
  std::string bytes;
  for (int i = 0; i < kTogether; ++i, next_stream_ += 2) {
    bytes += http2_frame(Http2Frame::kHeaders, kHttp2EndHeaders, next_stream_, headers);
    bytes += http2_frame(Http2Frame::kReset, 0, next_stream_, kCancel);
  }
  const bool sent = connection_.send(bytes);
  if (sent) begun_ += kTogether;
  return connection_.listen_in() && sent;
}

}  // namespace millrace
