// How a client's time runs out, and how it says that it goes.
#include <catch2/catch.hpp>
#include <optional>

#include "tests/support/host/eventually.h"
#include "tests/unit/daemon/serve/handoff/guests.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using shm::ReplyKind;
using shm::RequestKind;

TEST_CASE("a client whose session is being made is not sent away, however long that takes", "[handoff]") {
  HandoffRig rig({.session_within = 50ms});
  std::optional<Welcomed> asking;
  std::optional<HandoffServer::Connection> found;
  while (!found) {  // on a busy machine its time may have run out before
    asking.emplace(rig);
    found = rig.on_control([&] {
      const auto connection = rig.server().find(asking->ticket);
      if (connection) rig.server().opening(connection->id);
      return connection;
    });
  }

  // Others that came later are sent away meanwhile.
  for (int i = 0; i < 3; ++i) {
    Welcomed idle(rig);
    REQUIRE(refusal(idle.client) == "hand-off: no session was opened in time");
  }

  REQUIRE(rig.find(asking->ticket));
  rig.on_control([&] { rig.server().not_opened(found->id); });
  REQUIRE(refusal(asking->client) == "hand-off: no session was opened in time");
}

TEST_CASE("a client that says goodbye before it goes is told from one that just goes", "[handoff]") {
  HandoffRig rig;
  Seated polite(rig), gone(rig);

  REQUIRE(polite.client.send(handoff_request(RequestKind::kGoodbye)));
  polite.client.hang_up();
  gone.client.hang_up();

  REQUIRE(eventually([&] { return rig.events().gone() == 2; }));
  REQUIRE(rig.events().goodbyes() == 1);
}

TEST_CASE("a client that has said goodbye keeps its memory until it goes", "[handoff]") {
  HandoffRig rig;
  Seated polite(rig);

  REQUIRE(polite.client.send(handoff_request(RequestKind::kGoodbye)));
  REQUIRE(polite.client.send(handoff_request(RequestKind::kGoodbye)));
  REQUIRE(polite.client.send(handoff_request(RequestKind::kRingRequest, 4'096)));  // is answered behind both

  REQUIRE(polite.client.receive()->kind == static_cast<std::uint32_t>(ReplyKind::kRing));
  REQUIRE(rig.events().gone() == 0);
  REQUIRE(rig.find(polite.ticket));
}

}  // namespace
}  // namespace millrace
