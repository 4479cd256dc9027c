#include "daemon/serve/handoff/handoff_message.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace millrace {
namespace {

Error refused(Code code, std::string why) {
  return Error{code, "hand-off: " + std::move(why)};
}

shm::HandoffReply reply_of(shm::ReplyKind kind) {
  shm::HandoffReply reply{};
  reply.magic = shm::kHandoffMagic;
  reply.version = shm::kHandoffVersion;
  reply.kind = static_cast<std::uint32_t>(kind);
  return reply;
}

// The longest beginning of `text` of at most `most` bytes that splits no UTF-8 character.
std::string_view cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

}  // namespace

Result<HandoffMessage> parse_handoff(ByteView bytes_untrusted) {
  shm::HandoffRequest request{};
  if (bytes_untrusted.size() < offsetof(shm::HandoffRequest, kind))
    return refused(Code::kInvalid,
                   "a message of " + std::to_string(bytes_untrusted.size()) + " bytes, shorter than any");
  std::memcpy(&request, bytes_untrusted.data(), std::min(bytes_untrusted.size(), sizeof request));
  if (request.magic != shm::kHandoffMagic)
    return refused(Code::kPrecondition, "this is a Millrace daemon, and that was no message for one");
  if (request.version != shm::kHandoffVersion)
    return refused(Code::kPrecondition, "the daemon speaks version " + std::to_string(shm::kHandoffVersion) +
                                            ", the client version " + std::to_string(request.version) +
                                            ": install libmillrace and millraced of the same version");
  if (bytes_untrusted.size() != sizeof request)
    return refused(Code::kInvalid,
                   "a message has " + std::to_string(sizeof request) + " bytes, not " +
                       (bytes_untrusted.size() > sizeof request ? "more" : std::to_string(bytes_untrusted.size())));
  switch (static_cast<shm::RequestKind>(request.kind)) {
    case shm::RequestKind::kHello:
      if (request.ring_bytes != 0) return refused(Code::kInvalid, "ring_bytes: must be 0 in a Hello");
      if ((request.flags & ~std::uint32_t{shm::kWantsReplySocket}) != 0)
        return refused(Code::kInvalid,
                       "flags: this daemon knows 1, the reply socket, not " + std::to_string(request.flags));
      if (request.flags == 0)
        return refused(Code::kPrecondition,
                       "this client wants its replies over gRPC, where the daemon sends none: install client and "
                       "millraced of the same version, or set flag 1 in Hello and read the reply socket");
      return HandoffMessage{HandoffHello{}};
    case shm::RequestKind::kRingRequest:
      if (request.flags != 0) return refused(Code::kInvalid, "flags: must be 0 in a RingRequest");
      return HandoffMessage{HandoffRing{Bytes{request.ring_bytes}}};
    case shm::RequestKind::kGoodbye:
      if (request.flags != 0 || request.ring_bytes != 0)
        return refused(Code::kInvalid, "flags, ring_bytes: must be 0 in a Goodbye");
      return HandoffMessage{HandoffGoodbye{}};
    case shm::RequestKind::kLetGo:
      if (request.flags != 0 || request.ring_bytes != 0)
        return refused(Code::kInvalid, "flags, ring_bytes: must be 0 in a LetGo");
      return HandoffMessage{HandoffLetGo{}};
  }
  return refused(Code::kInvalid, "kind: no message has the number " + std::to_string(request.kind));
}

shm::HandoffReply welcome_reply(const Ticket& ticket) {
  shm::HandoffReply reply = reply_of(shm::ReplyKind::kWelcome);
  std::memcpy(reply.ticket, ticket.data(), ticket.size());
  return reply;
}

shm::HandoffReply segment_reply(Bytes segment) {
  shm::HandoffReply reply = reply_of(shm::ReplyKind::kSegment);
  reply.segment_bytes = segment.count;
  return reply;
}

shm::HandoffReply memory_reply(Bytes memory, const DeviceUuid& device) {
  static_assert(sizeof(DeviceUuid) == sizeof(shm::HandoffReply::ticket));
  shm::HandoffReply reply = reply_of(shm::ReplyKind::kMemory);
  std::memcpy(reply.ticket, device.data(), device.size());
  reply.segment_bytes = memory.count;
  return reply;
}

shm::HandoffReply ring_reply(Bytes ring) {
  shm::HandoffReply reply = reply_of(shm::ReplyKind::kRing);
  reply.segment_bytes = ring.count;
  return reply;
}

shm::HandoffReply refused_reply(const Error& error) {
  shm::HandoffReply reply = reply_of(shm::ReplyKind::kRefused);
  reply.code = static_cast<std::uint32_t>(error.code);
  const std::string_view text = cut(error.message, sizeof reply.message - 1);
  std::memcpy(reply.message, text.data(), text.size());
  return reply;
}

}  // namespace millrace
