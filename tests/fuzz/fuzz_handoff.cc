// Any datagram on the hand-off socket.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "daemon/serve/handoff/handoff_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  const auto bytes = std::as_bytes(std::span(data, size));
  const Result<HandoffMessage> message = parse_handoff(bytes);
  if (message) {
    MILLRACE_CHECK(bytes.size() == sizeof(shm::HandoffRequest));
    return 0;
  }
  const shm::HandoffReply reply = refused_reply(message.error());
  MILLRACE_CHECK(std::memchr(reply.message, 0, sizeof reply.message) != nullptr);
  return 0;
}
