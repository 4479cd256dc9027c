// No room: every budget says which it is and how to raise it. And a /dev/shm that is too small.
#include <catch2/catch.hpp>

#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/support/raw_session.h"

namespace millrace {
namespace {

Result<Session> open_of_size(const Daemon& daemon, std::uint32_t slots, Bytes slot_bytes) {
  return daemon.connect().open_session({.slots = slots, .slot_bytes = slot_bytes});
}

void require_exhausted(const Error& error, const std::string& budget) {
  REQUIRE(error.code == Code::kExhausted);
  REQUIRE_THAT(error.message, Catch::Contains(budget));
}

TEST_CASE("a session over the budget of shared memory is refused, and fits once another has gone", "[system]") {
  const Daemon daemon({.memory = "segments = \"8 MiB\"\n"});
  auto first = open_of_size(daemon, 4, 1_MiB);
  REQUIRE(first);

  const auto second = open_of_size(daemon, 4, 1_MiB);

  REQUIRE_FALSE(second);
  require_exhausted(second.error(), "memory.segments");
  first = Error{Code::kCancelled, "closed"};
  REQUIRE(open_of_size(daemon, 4, 1_MiB));
}

TEST_CASE("a session that asks for more slots than any may have is refused, naming the limit", "[system]") {
  const Daemon daemon({.limits = "slots = 4\n"});

  const auto session = open_of_size(daemon, 5, 64_KiB);

  REQUIRE_FALSE(session);
  require_exhausted(session.error(), "limits.slots");
  REQUIRE(open_of_size(daemon, 4, 64_KiB));
}

TEST_CASE("one session more than the daemon's or its user's limit is refused", "[system]") {
  for (const std::string limit : {"sessions", "sessions_per_user"}) {
    const Daemon daemon({.limits = limit + " = 2\n"});
    const auto first = open_of_size(daemon, 1, 64_KiB);
    const auto second = open_of_size(daemon, 1, 64_KiB);
    REQUIRE(first);
    REQUIRE(second);

    const auto third = open_of_size(daemon, 1, 64_KiB);

    REQUIRE_FALSE(third);
    require_exhausted(third.error(), "limits." + limit);
  }
}

TEST_CASE("one batch more than may wait for a slot is refused, the others are made", "[system]") {
  TempFolder folder;
  const auto paths = write_image_folder(folder.path(), {.images = 1, .classes = 0});
  const Daemon daemon({.roots = {folder.path()}, .limits = "queued_batches = 2\n"});
  Session session = need(daemon.connect().open_session({.slots = 1, .batch = 1, .recipe = Recipe::train(32)}));
  const BatchRequest request{.samples = {{.source = Path{paths[0]}}}};
  TensorView held = need(session.wait(need(session.submit(request)))).tensor;

  const Ticket second = need(session.submit(request));
  const Ticket third = need(session.submit(request));
  const Ticket fourth = need(session.submit(request));

  const Batch refused = need(session.wait(fourth));
  REQUIRE(refused.failure);
  require_exhausted(*refused.failure, "limits.queued_batches");
  held.release();
  for (const Ticket ticket : {second, third}) REQUIRE_FALSE(need(session.wait(ticket)).failure);
}

TEST_CASE("a batch that does not fit into a slot is refused and says what would", "[system]") {
  TempFolder folder;
  const auto paths = write_image_folder(folder.path(), {.images = 1, .classes = 0});
  const Daemon daemon({.roots = {folder.path()}});
  Session session = need(daemon.connect().open_session({.slots = 1, .slot_bytes = 4_KiB}));

  const Batch batch =
      need(session.wait(need(session.submit({.samples = {{.source = Path{paths[0]}}}, .recipe = Recipe::train(224)}))));

  REQUIRE(batch.failure);
  require_exhausted(*batch.failure, "slot_bytes");
}

TEST_CASE("one dataset more than a session may open is refused", "[system]") {
  TempFolder folder;
  write_image_folder(folder.path(), {.images = 1, .classes = 0});
  const Daemon daemon({.roots = {folder.path()}, .limits = "datasets = 1\n"});
  Session session = need(open_of_size(daemon, 1, 64_KiB));
  const Dataset first = need(session.open_dataset(folder.path()));

  const auto second = session.open_dataset(folder.path());

  REQUIRE_FALSE(second);
  require_exhausted(second.error(), "limits.datasets");
}

TEST_CASE("a /dev/shm that is too small is an error at session open that says so; small sessions still work",
          "[system]") {
  if (!can_have_own_shm()) return skip_loudly("a /dev/shm that is too small (needs root and mount namespaces)");
  TempFolder folder;
  write_image_folder(folder.path(), {.images = 8, .classes = 0});
  // The budget alone would allow it.
  const Daemon daemon({.roots = {folder.path()}, .memory = "segments = \"1 GiB\"\n", .shm_size = "8m"});

  const auto large = open_of_size(daemon, 4, 16_MiB);

  REQUIRE_FALSE(large);
  REQUIRE(large.error().code == Code::kExhausted);
  REQUIRE_THAT(large.error().message,
               Catch::Contains("/dev/shm") && Catch::Contains("remount") && Catch::Contains("--shm-size"));
  REQUIRE(daemon.metric("millrace_segment_bytes") == 0);
  REQUIRE(daemon.segments().empty());
  REQUIRE(daemon.run_client("epoch", {folder.path()}).ends_with("complete\n"));
}

}  // namespace
}  // namespace millrace
