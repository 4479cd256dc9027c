// What a decoder process may be once a hostile file has taken it over: it answers whatever it likes. Which lie, the
// width of the box says. For isolation_faults_test.cc; takes millrace-decoder's place.
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <limits>

#include "daemon/backend/cpu/decoders/pixel_buffer.h"
#include "daemon/backend/cpu/isolation/decoder_wire.h"
#include "proto/base/error.h"
#include "tests/support/host/decoder_processes.h"

int main() {
  using namespace millrace;
  const auto send = [](const void* data, std::size_t bytes) {
    return ::send(kDecoderChannel, data, bytes, MSG_NOSIGNAL) >= 0;
  };
  DecoderRequest request;
  static_cast<void>(::recv(kDecoderChannel, &request, sizeof request, 0));  // that it may begin
  const DecoderReply ready;
  if (!send(&ready, sizeof ready)) return 1;
  while (::recv(kDecoderChannel, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request)) {
    const std::uint64_t honest = request.room_at + PixelBuffer::kSlack;
    DecoderReply reply{.at = honest, .bytes = 100, .stride = std::int64_t{3} * request.box_width, .channels = 3};
    constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
    switch (request.box_width) {
      case 1:
        reply.at = honest - 1;
        break;
      case 2:
        reply.at = kMost;
        break;
      case 3:
        reply.at = request.room_at + request.room - PixelBuffer::kSlack;
        break;
      case 4:
        reply.stride = std::numeric_limits<std::int64_t>::max();
        break;
      case 5:
        reply.stride = -15;
        break;
      case 6:
        reply.stride = 0;
        break;
      case 7:
        reply.channels = 4;
        break;
      case 8:
        reply.channels = -3;
        break;
      case 9:
        reply.code = 77;
        break;
      case 10:
        reply.code = static_cast<std::uint32_t>(Code::kUnavailable);
        break;
      case 11:
        reply.stride += 1 << 20;
        break;
      case 12:
        reply.code = 1;
        std::memset(reply.text, '\x1b', sizeof reply.text);
        break;
      case 13:
        if (!send(&reply, 7)) return 1;
        continue;
      case 14:
        reply.bytes = kMost;
        reply.at = request.room_at;
        break;
      case 15:
        ::raise(kCrash);
        break;
      default:
        break;  // pixels that it never wrote
    }
    if (!send(&reply, sizeof reply)) return 1;
  }
  return 0;
}
