// Any datagram with any number of descriptors on the hand-off socket. The first byte is that number.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "daemon/serve/handoff_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const Result<HandoffMessage> message = parse_handoff(bytes, data[0]);
  if (message) {
    const bool ring = std::holds_alternative<HandoffRing>(*message);
    MILLRACE_CHECK(bytes.size() == sizeof(shm::HandoffRequest) && data[0] == (ring ? 1 : 0));
    return 0;
  }
  const shm::HandoffReply reply = refused_reply(message.error());
  MILLRACE_CHECK(std::memchr(reply.message, 0, sizeof reply.message) != nullptr);
  return 0;
}
