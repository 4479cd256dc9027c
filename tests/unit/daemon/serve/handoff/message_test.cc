#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "daemon/serve/handoff/handoff_message.h"

namespace millrace {
namespace {

shm::HandoffRequest request(shm::RequestKind kind) {
  shm::HandoffRequest made{};
  made.magic = shm::kHandoffMagic;
  made.version = shm::kHandoffVersion;
  made.kind = static_cast<std::uint32_t>(kind);
  if (kind == shm::RequestKind::kHello) made.flags = shm::kWantsReplySocket;
  return made;
}

Result<HandoffMessage> parse(const shm::HandoffRequest& made) {
  return parse_handoff(std::as_bytes(std::span(&made, 1)));
}

TEST_CASE("a Hello and a RingRequest are read as such", "[handoff]") {
  shm::HandoffRequest wanted = request(shm::RequestKind::kRingRequest);
  wanted.ring_bytes = 65'536;

  const auto hello = parse(request(shm::RequestKind::kHello));
  const auto ring = parse(wanted);

  REQUIRE(hello);
  REQUIRE(std::holds_alternative<HandoffHello>(*hello));
  REQUIRE(ring);
  REQUIRE(std::get<HandoffRing>(*ring).size_untrusted == 65'536_B);
}

TEST_CASE("a Goodbye is read as such, and has no other fields", "[handoff]") {
  shm::HandoffRequest with_flags = request(shm::RequestKind::kGoodbye);
  with_flags.flags = 1;
  shm::HandoffRequest with_ring = request(shm::RequestKind::kGoodbye);
  with_ring.ring_bytes = 1;

  const auto goodbye = parse(request(shm::RequestKind::kGoodbye));

  REQUIRE(goodbye);
  REQUIRE(std::holds_alternative<HandoffGoodbye>(*goodbye));
  REQUIRE(parse(with_flags).error().code == Code::kInvalid);
  REQUIRE(parse(with_ring).error().code == Code::kInvalid);
}

TEST_CASE("messages of any other length are refused", "[handoff]") {
  std::array<std::byte, sizeof(shm::HandoffRequest) + 1> bytes{};
  const shm::HandoffRequest hello = request(shm::RequestKind::kHello);
  std::memcpy(bytes.data(), &hello, sizeof hello);

  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    const auto message = parse_handoff(ByteView(bytes.data(), length));

    REQUIRE(message.has_value() == (length == sizeof hello));
    if (!message) REQUIRE(message.error().code == Code::kInvalid);
  }
}

TEST_CASE("another program's and another version's messages are told apart from broken ones", "[handoff]") {
  shm::HandoffRequest foreign = request(shm::RequestKind::kHello);
  foreign.magic = 0x47455420;
  shm::HandoffRequest newer = request(shm::RequestKind::kHello);
  newer.version = 3;

  const auto not_ours = parse(foreign);
  const auto too_new = parse(newer);

  REQUIRE(not_ours.error().code == Code::kPrecondition);
  REQUIRE(too_new.error().code == Code::kPrecondition);
  REQUIRE(too_new.error().message ==
          "hand-off: the daemon speaks version 2, the client version 3: install libmillrace and millraced of the same "
          "version");
}

TEST_CASE("a longer message of another version is refused for its version", "[handoff]") {
  std::array<std::byte, 25> bytes{};
  shm::HandoffRequest newer = request(shm::RequestKind::kHello);
  newer.version = 3;
  std::memcpy(bytes.data(), &newer, sizeof newer);

  REQUIRE(parse_handoff(bytes).error().code == Code::kPrecondition);
}

TEST_CASE("fields that have no meaning yet must be zero", "[handoff]") {
  shm::HandoffRequest flagged = request(shm::RequestKind::kHello);
  flagged.flags = 3;
  shm::HandoffRequest flagged_ring = request(shm::RequestKind::kRingRequest);
  flagged_ring.flags = 1;
  shm::HandoffRequest with_size = request(shm::RequestKind::kHello);
  with_size.ring_bytes = 1;
  shm::HandoffRequest unknown = request(shm::RequestKind::kHello);
  unknown.kind = 5;

  REQUIRE(parse(flagged).error().message == "hand-off: flags: this daemon knows 1, the reply socket, not 3");
  REQUIRE(parse(flagged_ring).error().message == "hand-off: flags: must be 0 in a RingRequest");
  REQUIRE(parse(with_size).error().message == "hand-off: ring_bytes: must be 0 in a Hello");
  REQUIRE(parse(unknown).error().message == "hand-off: kind: no message has the number 5");
}

TEST_CASE("a Hello of a client that reads no reply socket is refused, and says what to do", "[handoff]") {
  shm::HandoffRequest plain = request(shm::RequestKind::kHello);
  plain.flags = 0;

  const auto refused = parse(plain);

  REQUIRE(refused.error().code == Code::kPrecondition);
  REQUIRE_THAT(refused.error().message, Catch::Contains("of the same version, or set flag 1 in Hello"));
  REQUIRE(std::string(refused_reply(refused.error()).message) == refused.error().message);  // nothing of it is cut off
}

TEST_CASE("a refusal carries code and text, and a long text is cut between characters", "[handoff]") {
  const auto short_one = refused_reply({Code::kExhausted, "no room"});
  const auto long_one = refused_reply({Code::kInvalid, std::string(198, 'a') + "\u00fc and more"});

  REQUIRE(short_one.kind == static_cast<std::uint32_t>(shm::ReplyKind::kRefused));
  REQUIRE(short_one.code == static_cast<std::uint32_t>(Code::kExhausted));
  REQUIRE(std::string(short_one.message) == "no room");
  REQUIRE(std::string(long_one.message) == std::string(198, 'a'));
}

}  // namespace
}  // namespace millrace
