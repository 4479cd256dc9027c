// Sessions whose slots are still being filled: nobody waits for a large one, what finds no room is withdrawn, and what
// dies in the middle leaves nothing.
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

Bytes free_shared_memory() {
  struct statvfs status {};
  REQUIRE(::statvfs("/dev/shm", &status) == 0);
  return Bytes{status.f_bavail} * status.f_frsize;
}

// For sessions of 4 GiB, of which some hundred megabytes are filled while a test looks.
bool has_room() {
  const bool has = free_shared_memory() > 6_GiB;
  if (!has) skip_loudly("large sessions: /dev/shm has less than 6 GiB free");
  return has;
}

struct OpeningMill {
  explicit OpeningMill(DaemonSpec spec)
      : daemon([&] {
          paths = write_image_folder(folder / "pictures", {.images = 16, .classes = 2});
          spec.roots = {folder.path()};
          return spec;
        }()) {}

  BatchRequest batch() const {
    return {.samples = {{.source = Path{paths[0]}}}, .recipe = Recipe::train(32), .on_error = OnError::kFail};
  }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
};

SessionStatistics only_session(const Daemon& daemon) {
  const Statistics statistics = need(daemon.connect().statistics());
  REQUIRE(statistics.sessions.size() == 1);
  return statistics.sessions.front();
}

TEST_CASE("another user trains in a small session while a large one is being filled", "[system]") {
  if (!has_room()) return;
  if (!is_root()) return skip_loudly("two users (needs root)");
  OpeningMill mill({.memory = "segments = \"5 GiB\"\n", .for_all_users = true});
  REQUIRE(::chmod(mill.folder.path().c_str(), 0755) == 0);
  const Session large = need(mill.daemon.connect().open_session({.slots = 4, .slot_bytes = 1_GiB}));

  const std::string epoch = mill.daemon.run_client("epoch", {mill.folder / "pictures"}, 65'534);

  CHECK(epoch.ends_with("complete\n"));
  CHECK(only_session(mill.daemon).slots_not_ready > 0);
}

TEST_CASE("a large session's batches are made while the rest of it is being filled", "[system]") {
  if (!has_room()) return;
  OpeningMill mill({.memory = "segments = \"5 GiB\"\n"});
  Session session = need(mill.daemon.connect().open_session({.slots = 128, .slot_bytes = 32_MiB}));

  for (int i = 0; i < 8; ++i) {
    const Batch batch = need(session.wait(need(session.submit(mill.batch()))));
    CHECK_FALSE(batch.failure);
    CHECK(batch.tensor.samples() == 1);
  }

  CHECK(only_session(mill.daemon).slots_not_ready > 0);
}

TEST_CASE("a session for which /dev/shm has no room later has fewer slots, and serves in those", "[system]") {
  OpeningMill mill({.file_bytes = 128_MiB});
  Session session = need(mill.daemon.connect().open_session({.slots = 10, .slot_bytes = 20_MiB}));
  REQUIRE(eventually([&] { return only_session(mill.daemon).slots_withdrawn == 4; }));

  std::vector<Batch> held;
  for (int i = 0; i < 6; ++i) held.push_back(need(session.wait(need(session.submit(mill.batch())))));

  for (const Batch& batch : held) CHECK_FALSE(batch.failure);
  CHECK(session.slots() == 6);
  CHECK(only_session(mill.daemon).slots == 6);
  CHECK(only_session(mill.daemon).slots_free == 0);
  held.clear();
  CHECK_FALSE(need(session.wait(need(session.submit(mill.batch())))).failure);
  CHECK_THAT(mill.daemon.errors(), Catch::Contains("4 of 10 slots withdrawn") && Catch::Contains("/dev/shm"));
  CHECK(mill.daemon.running());
}

TEST_CASE("a client killed while its session is being filled leaves nothing", "[system]") {
  if (!has_room()) return;
  OpeningMill mill({.memory = "segments = \"5 GiB\"\n"});
  const Bytes before = free_shared_memory();
  Process client = mill.daemon.client("open", {"4", "1024"});
  client.wait_for("open");
  REQUIRE(only_session(mill.daemon).slots_not_ready > 0);

  client.kill(SIGKILL);

  CHECK(eventually([&] { return mill.daemon.metric("millrace_segment_bytes") == 0; }));
  CHECK(eventually([&] { return mill.daemon.segments().empty(); }));
  CHECK(eventually([&] { return free_shared_memory() + 512_MiB > before; }));
  CHECK_FALSE(
      need(need(mill.daemon.connect().open_session({.slots = 4, .slot_bytes = 1_GiB})).submit(mill.batch())).batch ==
      0);
}

TEST_CASE("a daemon killed while it fills leaves nothing in /dev/shm", "[system]") {
  if (!has_room()) return;
  OpeningMill mill({.memory = "segments = \"5 GiB\"\n"});
  const Bytes before = free_shared_memory();
  {
    Session session = need(mill.daemon.connect().open_session({.slots = 4, .slot_bytes = 1_GiB}));
    REQUIRE(only_session(mill.daemon).slots_not_ready > 0);

    mill.daemon.kill(SIGKILL);

    REQUIRE(mill.daemon.wait() == 128 + SIGKILL);
    CHECK(session.wait(need(session.submit(mill.batch()))).error().code == Code::kUnavailable);
  }
  CHECK(eventually([&] { return free_shared_memory() + 512_MiB > before; }));
  CHECK(eventually([] { return names_in_dev_shm().empty(); }));
}

TEST_CASE("a daemon that is told to stop while it fills stops", "[system]") {
  if (!has_room()) return;
  OpeningMill mill({.memory = "segments = \"5 GiB\"\n"});
  const Session session = need(mill.daemon.connect().open_session({.slots = 4, .slot_bytes = 1_GiB}));
  REQUIRE(only_session(mill.daemon).slots_not_ready > 0);

  mill.daemon.kill(SIGTERM);

  CHECK(mill.daemon.wait() == 0);
}

}  // namespace
}  // namespace millrace
