// Why a program waits: what is kept is not there yet, or has no room.
#include "tests/system/support/host_faults.h"
#include "tests/system/why/why_mill.h"

namespace millrace {
namespace {

TEST_CASE("a first epoch, of which nothing is kept, is told as one, and later ones are not", "[system]") {
  const TempFolder shared;
  HostFaults faults(shared / "faults");
  faults.reads_take(30, "pictures");
  const WhyMill mill({.images = 300}, {.env = {faults.env()}, .program = bad_host_program()});
  Session session = mill.open(4, 8);
  const Dataset dataset = need(session.open_dataset(mill.pictures()));
  const Program loop(epochs(session, dataset));

  REQUIRE(says_first_of_ours(mill, session.id(), "first_epoch"));
  faults.reads_take(0, "");
  CHECK(mill.eventually_says(session.id(),
                             [](const SessionFindings& told) { return finding_of(told, "first_epoch") == nullptr; }));
}

TEST_CASE("a cache that is too small for the set is named", "[system]") {
  const WhyMill mill({.images = 64, .side = 900}, {.cache = "memory = \"1MiB\"\n"});
  Session session = need(
      mill.daemon.connect().open_session({.slots = 4, .batch = 8, .recipe = Recipe::train(32), .cache_at_once = true}));
  const Dataset dataset = need(session.open_dataset(mill.pictures()));
  const Program loop(epochs(session, dataset));

  REQUIRE(mill.eventually_says(
      session.id(), [](const SessionFindings& told) { return finding_of(told, "cache_too_small") != nullptr; }));
  CHECK_THAT(finding_of(mill.last, "cache_too_small")->text, Catch::Contains("`cache.memory` (1"));
}

}  // namespace
}  // namespace millrace
