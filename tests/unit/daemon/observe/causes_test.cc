// What is made of two looks: which cause is named, for what part of the waiting, and what the program would reach.
#include "daemon/observe/explain/causes.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "daemon/observe/explain/history.h"
#include "daemon/observe/explain/scene.h"
#include "daemon/observe/explain/slow_files.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

// Ten seconds of a session on four lanes: a thousand images in fifty batches.
struct TenSeconds {
  TenSeconds() {
    now.at = then.at + 10s;
    daemon_then.at = then.at;
    daemon_now.at = now.at;
    now.images = now.made = daemon_now.images = 1'000;
    now.batches = now.released = now.waits_told = 50;
    now.bytes_read = 100'000'000;
    now.lanes = daemon_now.lanes = 10s;
    now.decode = 8s;
    around.lanes = around.slots = 4;
  }
  void was_in(SessionState state, std::chrono::nanoseconds time, std::chrono::nanoseconds waited) {
    now.times[static_cast<std::size_t>(state)] = time;
    now.waits[static_cast<std::size_t>(state)] = waited;
  }
  Explained said() const { return explain(then, now, daemon_then, daemon_now, around); }

  SessionLook then{.at = SessionStates::Clock::now()}, now;
  DaemonLook daemon_then, daemon_now;
  Circumstances around;
};

TEST_CASE("a program that waits for less than a twentieth of its time is told that it does not wait") {
  TenSeconds ten;
  ten.was_in(SessionState::kClient, 8s, 0s);
  ten.was_in(SessionState::kMaking, 2s, 400ms);
  const Explained said = ten.said();
  REQUIRE(said.causes.size() == 1);
  CHECK(said.causes[0].code == "loop_computes");
  CHECK(said.causes[0].text ==
        "Your loop takes 200 ms a batch and waits 8.0 ms of these; for 160 ms every slot held a finished batch: "
        "Millrace waits for you.");
  CHECK(said.causes[0].images_per_second == Approx(400));  // what four lanes make, in 10 ms each
  CHECK(said.waited == Approx(0.04));
}

TEST_CASE("the dearest cause comes first, and shares are of the waiting") {
  TenSeconds ten;
  ten.was_in(SessionState::kReading, 5s, 3s);
  ten.was_in(SessionState::kReadBudget, 2s, 1s);
  ten.was_in(SessionState::kSettling, 2s, 100ms);
  const Explained said = ten.said();
  REQUIRE(said.causes.size() == 2);
  CHECK(said.causes[0].code == "slow_disk");
  CHECK(said.causes[0].share == Approx(3 / 4.1));
  CHECK(said.causes[0].images_per_second == Approx(1'000 / 7.0));
  CHECK(said.causes[1].code == "encoded_in_flight");
  CHECK(said.waited == Approx(0.41));
  CHECK(said.waits_told);
}

TEST_CASE("what lanes still take bounds what a program would reach without its disk") {
  TenSeconds ten;
  ten.now.lanes = ten.daemon_now.lanes = 36s;  // of 40
  ten.was_in(SessionState::kReading, 9s, 9s);
  CHECK(ten.said().causes[0].images_per_second == Approx(4 / 0.036));
}

TEST_CASE("reading where all images are kept is told without rates of files", "[unit]") {
  TenSeconds ten;
  ten.now.bytes_read = 0;
  ten.was_in(SessionState::kReading, 5s, 4s);
  const Cause told = ten.said().causes[0];
  CHECK(told.code == "slow_disk");
  CHECK(told.text == "No file was read: you wait 80 ms a batch for what is kept to be read.");
  CHECK(told.figures.empty());
}

TEST_CASE("the daemon's figures of a shorter time are laid on the session's", "[unit]") {
  TenSeconds ten;
  ten.daemon_then.at = ten.now.at - 2s;
  ten.now.lanes = 10s;
  ten.daemon_now.lanes = 8s;  // all lanes were at work
  ten.was_in(SessionState::kLaneTurn, 8s, 4s);
  const Explained said = ten.said();
  CHECK(said.causes[0].code == "others_have_lanes");
  CHECK(said.causes[0].figures[0].value == Approx(1));
  CHECK(said.causes[0].figures[1].value == Approx(3));
}

TEST_CASE("lanes bound what a program would reach that holds its slots no more", "[unit]") {
  TenSeconds ten;
  ten.now.told = 9s;
  ten.now.slot_waits = 27s;  // three of four
  ten.was_in(SessionState::kMaking, 9s, 9s);
  CHECK(ten.said().causes[0].code == "slots_held");
  CHECK(ten.said().causes[0].images_per_second == Approx(400));
}

TEST_CASE("a larger cache is advised where something is not kept, and a faster disk where files are read", "[unit]") {
  TenSeconds ten;
  ten.was_in(SessionState::kReading, 4s, 4s);
  ten.was_in(SessionState::kMaking, 5s, 5s);
  CHECK_THAT(ten.said().causes[0].advice, Catch::Contains("`cache.memory`"));
  CHECK_THAT(ten.said().causes[1].text, Catch::Contains("Files give 10.0 MB/s"));

  ten.daemon_now.cache_hits = 1'000;
  ten.now.bytes_read = 0;
  CHECK(ten.said().causes[0].code == "own_work");
  CHECK_THAT(ten.said().causes[0].advice, !Catch::Contains("cache"));
  CHECK(ten.said().causes[1].code == "slow_disk");
  CHECK_THAT(ten.said().causes[1].text, Catch::Contains("No file was read"));
}

TEST_CASE("who has the lanes is to blame for as much of the waiting for them") {
  TenSeconds ten;
  ten.was_in(SessionState::kMaking, 8s, 4s);
  ten.was_in(SessionState::kLaneTurn, 2s, 2s);
  ten.daemon_now.lanes = 40s;
  ten.around.others = {{.uid = 1001, .weight = 3, .sessions = 1}};
  const Explained said = ten.said();
  REQUIRE(said.causes.size() == 2);
  CHECK(said.causes[0].code == "others_have_lanes");
  CHECK(said.causes[0].share == Approx(0.75));
  CHECK(said.causes[0].text ==
        "You have 1.0 of 4 lanes, and other sessions have 3.0: the weight of user 1001 is 3, and yours is 1.");
  CHECK(said.causes[1].code == "own_work");
  ten.around.lanes = 1;
  CHECK_THAT(ten.said().causes[0].text, Catch::Contains("You have 1.0 of 1 lane, "));
  CHECK_THAT(ten.said().causes[1].text, Catch::Contains(": 1 lane makes 100 a second."));
}

TEST_CASE("processors that others have, or that cpu.max denies, come before the session's own work") {
  TenSeconds ten;
  ten.was_in(SessionState::kMaking, 8s, 8s);
  ten.daemon_now.host = {.busy = 30, .idle = 10, .own = 10, .lanes_ran = 5, .lanes_lacked = 5};
  CHECK(ten.said().causes[0].code == "other_programs");
  CHECK(ten.said().causes[0].share == Approx(0.5));
  ten.daemon_now.host.periods = 100;
  ten.daemon_now.host.periods_cut = 90;
  CHECK(ten.said().causes[0].code == "cpu_max");
  CHECK(ten.said().causes[0].share == Approx(0.9));
}

TEST_CASE("a cache is too small once it drops what it has, and in a first epoch there is nothing yet") {
  TenSeconds ten;
  ten.was_in(SessionState::kMaking, 8s, 8s);
  ten.around.cache_memory = 1_GiB;
  ten.daemon_now.first_touches = 1'000;
  CHECK(ten.said().causes[0].code == "first_epoch");
  ten.daemon_now.cache_evictions = 500;
  ten.around.cache_bytes = 1_GiB;
  ten.daemon_now.cache_misses = 1'000;
  CHECK(ten.said().causes[0].code == "cache_too_small");
}

TEST_CASE("a session that has nothing kept is told of its own setting, and of no first epoch") {
  TenSeconds ten;
  ten.was_in(SessionState::kMaking, 8s, 8s);
  ten.around.cache_memory = 1_GiB;
  ten.daemon_now.first_touches = 1'000;
  ten.around.keeps = false;
  const Explained said = ten.said();
  REQUIRE(said.causes.size() == 1);
  CHECK(said.causes[0].code == "own_work");
  CHECK_THAT(said.causes[0].advice, Catch::Contains("`cache=\"packed\"` for this session"));
  ten.was_in(SessionState::kReading, 2s, 2s);
  CHECK_THAT(ten.said().causes[1].advice, Catch::Contains("`cache=\"packed\"` for this session"));
}

TEST_CASE("a client that says nothing has waited for all that its session has done") {
  TenSeconds ten;
  ten.now.waits_told = 0;
  ten.was_in(SessionState::kRequest, 6s, 0s);
  ten.was_in(SessionState::kMaking, 4s, 0s);
  const Explained said = ten.said();
  CHECK_FALSE(said.waits_told);
  CHECK(said.waited == Approx(0.4));
  CHECK(said.causes[0].code == "own_work");
}

TEST_CASE("a program that has given no batch back yet is not taken for one that says nothing") {
  TenSeconds ten;
  ten.now.images = ten.now.batches = ten.now.released = ten.now.waits_told = 0;
  ten.was_in(SessionState::kListing, 9s, 9s);
  const Explained said = ten.said();
  CHECK(said.waits_told);
  CHECK(said.waited == Approx(0.9));
  CHECK(said.causes[0].code == "listing");
}

TEST_CASE("waits that are told late are no more than the time between the looks") {
  TenSeconds ten;
  ten.was_in(SessionState::kReading, 10s, 100s);
  CHECK(ten.said().waited == Approx(1));
  CHECK(ten.said().causes[0].share <= 1);
}

TEST_CASE("looks at the same moment, and a session without an image, make figures that are numbers") {
  TenSeconds ten;
  ten.now = ten.then;
  ten.daemon_now = ten.daemon_then;
  REQUIRE(ten.said().causes.size() == 1);
  CHECK(ten.said().causes[0].code == "idle");
  ten.now.at -= 30ms;  // it opened after the look
  ten.now.times[static_cast<std::size_t>(SessionState::kIdle)] = -30ms;
  CHECK(ten.said().seconds == 0);
  CHECK_THAT(ten.said().causes[0].text, !Catch::Contains("-"));
  for (std::size_t i = 0; i < kSessionStates; ++i) {
    TenSeconds other;
    other.now = {.at = other.then.at + 10s};
    other.was_in(static_cast<SessionState>(i), 10s, 9s);
    for (const Cause& cause : other.said().causes) {
      CHECK(std::isfinite(cause.share));
      CHECK(cause.images_per_second == 0);
      CHECK_FALSE(cause.text.empty());
      CHECK_FALSE(cause.advice.empty());
      for (const CauseFigure& figure : cause.figures) CHECK(std::isfinite(figure.value));
    }
  }
}

TEST_CASE("every cause has a name of its own, words and advice") {
  const TenSeconds ten;
  std::set<std::string_view> names;
  const Scene scene{.around = ten.around, .waited = waited_between(ten.then, ten.now)};
  for (std::size_t i = 0; i <= static_cast<std::size_t>(CauseCode::kIdle); ++i) {
    const Cause cause = cause_of(static_cast<CauseCode>(i), 1, scene);
    CHECK(names.insert(cause.code).second);
    CHECK(cause.text.ends_with('.'));
    CHECK(cause.advice.ends_with('.'));
  }
}

TEST_CASE("a few slow files are told from a disk that is slow for all") {
  TenSeconds ten;
  ten.was_in(SessionState::kReading, 9s, 9s);
  SlowFiles files;
  for (int i = 0; i < 100; ++i) files.note(1ms, [] { return std::string("never asked for"); });
  for (int i = 0; i < 3; ++i) files.note(400ms, [] { return std::string("/data/slow.jpg"); });
  ten.around.reading = files.sums();
  const Explained said = ten.said();
  CHECK(said.causes[0].code == "slow_files");
  CHECK(said.causes[0].paths == std::vector<std::string>{"/data/slow.jpg"});
  CHECK(said.causes[0].text == "1 file takes 92 % of the time for reading: 400 ms each time, and all others 1.0 ms.");

  for (int i = 0; i < 100; ++i) files.note(100ms, [&] { return "/data/" + std::to_string(i); });
  ten.around.reading = files.sums();
  CHECK(ten.said().causes[0].code == "slow_disk");
}

TEST_CASE("slow files are remembered for a while, the slowest of them, and none with an endless name") {
  SlowFiles files;
  for (int i = 0; i < 100; ++i) files.note(i * 1ms, [&] { return std::to_string(i); });
  files.note(10s, [] { return std::string(SlowFiles::kLongestName + 1, 'x'); });
  REQUIRE(files.sums().slowest.size() == SlowFiles::kMost);
  CHECK(files.sums().slowest[0].name == "99");
  CHECK(files.sums().images == 101);
  const auto now = SlowFiles::Clock::now();
  files.pass(now + 20s);
  CHECK(files.sums().slowest.size() == SlowFiles::kMost);
  files.pass(now + 40s);
  CHECK(files.sums().slowest.empty());
  CHECK(files.sums().all == 0s);
}

TEST_CASE("a session's history has ten minutes of plots and twenty seconds of looks") {
  SessionLook look{.at = SessionStates::Clock::now()};
  SessionHistory history(look);
  for (std::size_t i = 0; i < SessionHistory::kPlotted + 50; ++i) {
    look.at += 1s;
    look.images += 7;
    look.waits_told = 1;
    look.waits[static_cast<std::size_t>(SessionState::kReading)] += 500ms;
    history.add(look);
  }
  CHECK(look.at - history.oldest().at == 20s);
  REQUIRE(history.images_per_second().size() == SessionHistory::kPlotted);
  CHECK(history.images_per_second().front() == Approx(7));
  CHECK(history.waited().back() == Approx(0.5).margin(0.01));
}

}  // namespace
}  // namespace millrace
