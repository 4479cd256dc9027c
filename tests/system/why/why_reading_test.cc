// Why a program waits: files, budgets, lists and memory.
#include "tests/system/support/host_faults.h"
#include "tests/system/support/raw_mill.h"
#include "tests/system/support/raw_session.h"
#include "tests/system/support/users.h"
#include "tests/system/why/why_mill.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

// A mill whose daemon reads as the test says.
struct SlowMill {
  explicit SlowMill(WhyPictures pictures = {}, DaemonSpec spec = {.cache = kNothingKept})
      : mill(pictures, [&] {
          spec.env = {faults.env()};
          spec.program = bad_host_program();
          return spec;
        }()) {}

  TempFolder shared;
  HostFaults faults{shared / "faults"};
  WhyMill mill;
};

TEST_CASE("a slow disk is named, with what it gives and what is needed", "[system]") {
  SlowMill slow;
  slow.faults.reads_take(10, "pictures");
  Session session = slow.mill.open();
  const Dataset dataset = need(session.open_dataset(slow.mill.pictures()));
  const Program loop(epochs(session, dataset));

  REQUIRE(slow.mill.says_first(session.id(), "slow_disk"));
  const SessionFindings told = slow.mill.last;
  const Finding& disk = told.findings[0];
  CHECK(told.waits_told);
  CHECK(disk.share > 0.5);
  CHECK(figure_of(disk, "needed_bytes_per_second") > figure_of(disk, "disk_bytes_per_second"));
  CHECK(disk.images_per_second > told.images_per_second);
  CHECK_THAT(disk.advice, Catch::Contains("`cache.memory`"));
}

TEST_CASE("a read that hangs is a root's that does not answer, before anybody has got a batch", "[system]") {
  SlowMill slow;
  slow.faults.reads_hang("pictures");
  Session session = slow.mill.open();
  const Ticket ticket = need(session.submit(slow.mill.batch()));

  CHECK(slow.mill.says_first(session.id(), "root_hangs"));

  slow.faults.reads_hang("");
  CHECK_FALSE(need(session.wait(ticket)).failure);
}

TEST_CASE("a few slow files are named, to their session's user and to administrators alone", "[system]") {
  SlowMill slow({.images = 64}, {.cache = kNothingKept, .for_all_users = true});
  slow.faults.reads_take(150, "1007.jpg");
  Session session = slow.mill.open();
  const Dataset dataset = need(session.open_dataset(slow.mill.pictures()));
  const Program loop(epochs(session, dataset));

  REQUIRE(slow.mill.says_first(session.id(), "slow_files"));
  const SessionFindings told = slow.mill.last;
  REQUIRE(told.findings[0].paths.size() == 1);
  CHECK_THAT(told.findings[0].paths[0], Catch::EndsWith("1007.jpg"));
  CHECK_THAT(told.findings[0].text, Catch::Contains("1 file"));
  if (skipped_without_root("that other users are told no paths")) return;
  const std::string cli = copy_for_all_users(bin_folder() + "/millrace", slow.mill.folder.path());
  const Process other =
      Process::spawn({.argv = {cli, "why", "--json", "--socket", slow.mill.daemon.socket()}, .user = kStranger});
  REQUIRE(other.wait() == 0);
  CHECK_THAT(other.output(), Catch::Contains("\"code\":\"slow_files\"") && !Catch::Contains("1007.jpg"));
}

TEST_CASE("a full budget of encoded bytes is named", "[system]") {
  const WhyMill mill({.images = 8, .side = 900},
                     {.memory = "encoded_in_flight = \"1MiB\"\n", .cache = kNothingKept, .fake = "delay_us=3000000"});
  Session holds = mill.open(8, 8), waits = mill.open();
  for (int i = 0; i < 8; ++i) need(holds.submit(mill.batch(8, "fake")));
  const Program loop([&] { need(waits.wait(need(waits.submit(mill.batch())))); });

  REQUIRE(mill.says_first(waits.id(), "encoded_in_flight"));
  const Finding told = mill.last.findings[0];
  CHECK_THAT(told.text, Catch::Contains("`memory.encoded_in_flight` (1"));
}

TEST_CASE("a lack of memory for large pictures is named", "[system]") {
  const WhyMill mill({.images = 4, .side = 3200, .png = true},
                     {.memory = "decoding = \"32MiB\"\n", .cache = kNothingKept, .fake = "delay_us=3000000"});
  Session holds = mill.open(8, 4), waits = mill.open();
  for (int i = 0; i < 8; ++i) need(holds.submit(mill.batch(4, "fake")));
  const Program loop([&] { need(waits.wait(need(waits.submit(mill.batch())))); });

  CHECK(mill.says_first(waits.id(), "memory_decoding"));
}

TEST_CASE("a list that comes slowly is a listing", "[system]") {
  const RawMill mill;
  RawSession session(mill.daemon.socket(), {});
  v1::ClientMessage list;
  list.mutable_list_files()->set_dataset_id(7);
  list.mutable_list_files()->set_folder(mill.folder.path());
  session.send(list);

  Client client = mill.daemon.connect();
  CHECK(eventually([&] { return need(client.explain()).at(0).findings.at(0).code == "listing"; }));
}

TEST_CASE("slots whose memory is being filled are named", "[system]") {
  const WhyMill mill;
  Session session = need(
      mill.daemon.connect().open_session({.slots = 4, .batch = 4, .recipe = Recipe::train(32), .slot_bytes = 1_GiB}));
  std::thread program([&] {
    std::vector<Batch> held;
    for (int i = 0; i < 4; ++i) need(session.submit(mill.batch(4)));
    for (int i = 0; i < 4; ++i) held.push_back(need(session.next(std::chrono::minutes(2))));
  });

  CHECK(mill.says_first(session.id(), "filling_slots"));
  program.join();
}

TEST_CASE("a daemon that drains says so before all else", "[system]") {
  SlowMill slow;
  slow.faults.reads_hang("pictures");
  Session session = slow.mill.open();
  const Ticket ticket = need(session.submit(slow.mill.batch()));
  REQUIRE(slow.mill.says_first(session.id(), "root_hangs"));
  const Process drain =
      Process::spawn({.argv = {bin_folder() + "/millrace", "admin", "drain", "--socket", slow.mill.daemon.socket()}});

  CHECK(slow.mill.says_first(session.id(), "draining"));
  CHECK(finding_of(slow.mill.last, "root_hangs") != nullptr);

  slow.faults.reads_hang("");
  CHECK_FALSE(need(session.wait(ticket)).failure);
  CHECK(drain.wait() == 0);
}

TEST_CASE("of a slow disk and images that are dear, both are named", "[system]") {
  SlowMill slow({.images = 8, .side = 1500});
  slow.faults.reads_take(25, "pictures");
  Session session = slow.mill.open(2, 8);
  const Program loop([&] { need(session.wait(need(session.submit(slow.mill.batch(8))))); });

  CHECK(slow.mill.eventually_says(session.id(), [](const SessionFindings& told) {
    return finding_of(told, "slow_disk") != nullptr &&
           (finding_of(told, "own_work") != nullptr || finding_of(told, "other_programs") != nullptr);
  }));
}

}  // namespace
}  // namespace millrace
