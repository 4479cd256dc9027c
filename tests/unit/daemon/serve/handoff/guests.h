// Clients that have come so far into the hand-off. For tests; steps that fail fail the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/daemon/serve/handoff/rig.h"

namespace millrace {

// A client that has said Hello and was welcomed.
struct Welcomed {
  explicit Welcomed(const HandoffRig& rig) : client(rig.path()) {
    REQUIRE(client.connected());
    REQUIRE(client.send(handoff_request(shm::RequestKind::kHello)));
    const auto reply = client.receive();
    REQUIRE(reply);
    REQUIRE(reply->kind == static_cast<std::uint32_t>(shm::ReplyKind::kWelcome));
    ticket = ticket_of(*reply);
  }

  RawClient client;
  Ticket ticket{};
};

inline UniqueFd file_of_ten_bytes() {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC));
  REQUIRE(::ftruncate(fd.get(), 10) == 0);
  return fd;
}

// Welcomed, and with a segment.
struct Seated : Welcomed {
  explicit Seated(HandoffRig& rig) : Welcomed(rig) {
    const UniqueFd segment = file_of_ten_bytes();
    const auto connection = rig.find(ticket);
    REQUIRE(connection);
    id = connection->id;
    REQUIRE(rig.on_control([&] { return rig.server().send_segment(id, segment.get(), 10_B); }));
    const auto reply = client.receive();
    REQUIRE(reply);
    REQUIRE(reply->kind == static_cast<std::uint32_t>(shm::ReplyKind::kSegment));
    REQUIRE(reply->segment_bytes == 10);
    REQUIRE(client.descriptor);
  }

  ClientId id{};
};

// The reason of a refusal after which the connection has ended.
inline std::string refusal(RawClient& client) {
  const auto reply = client.receive();
  REQUIRE(reply);
  REQUIRE(reply->kind == static_cast<std::uint32_t>(shm::ReplyKind::kRefused));
  REQUIRE_FALSE(client.receive());
  return reply->message;
}

}  // namespace millrace
