// Why a program waits: it does not, or what it waits for is its own.
#include <deque>

#include "tests/system/support/raw_mill.h"
#include "tests/system/support/raw_session.h"
#include "tests/system/why/why_mill.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a loop that computes is told that Millrace waits for it", "[system]") {
  const WhyMill mill;
  Session session = mill.open();
  const Dataset dataset = need(session.open_dataset(mill.pictures()));
  const Program loop(epochs(session, dataset, [] { std::this_thread::sleep_for(40ms); }));

  // At first no slot has been full yet.
  REQUIRE(mill.eventually_says(session.id(), [](const SessionFindings& told) {
    return told.findings[0].code == "loop_computes" && told.findings[0].text.ends_with("Millrace waits for you.");
  }));
  const SessionFindings told = mill.last;
  CHECK(told.findings.size() == 1);
  CHECK(told.waited < 0.05);
  CHECK_THAT(told.findings[0].text, Catch::StartsWith("Your loop takes "));
  CHECK(figure_of(told.findings[0], "ready_seconds_per_batch") > 0);
  CHECK(told.findings[0].images_per_second > told.images_per_second);
}

TEST_CASE("a program that keeps its batches is told that it holds the slots", "[system]") {
  const WhyMill mill({.side = 600});
  Session session = mill.open();
  std::deque<Batch> kept;
  const Program loop([&] {
    kept.push_back(need(session.wait(need(session.submit(mill.batch())))));
    if (kept.size() > 3) kept.pop_front();
  });

  REQUIRE(mill.says_first(session.id(), "slots_held"));
  const SessionFindings told = mill.last;
  CHECK(figure_of(told.findings[0], "slots") == 4);
  CHECK(figure_of(told.findings[0], "slots_held") > 2.5);
  CHECK_THAT(told.findings[0].text, Catch::Contains("of 4 slots"));
}

// A program of two batches: while it is at one it names the next, which takes its source 30 ms, and then waits.
TEST_CASE("a program whose source of images is slow is told so", "[system]") {
  const RawMill mill;
  RawSession session(mill.daemon.socket(), {});
  std::optional<v1::ClientMessage> gives_back;  // the batch that it is at
  std::uint64_t batch = 0;
  const Program loop([&] {
    const auto asked = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(30ms);
    session.send(mill.submit(++batch));
    v1::ClientMessage next = release_of(session.receive().completed().handle());
    const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - asked;
    next.mutable_release()->set_waited_ns(static_cast<std::uint64_t>(waited.count()));
    if (gives_back) session.send(*gives_back);
    gives_back = std::move(next);
  });
  Client client = mill.daemon.connect();

  CHECK(eventually([&] {
    const SessionFindings told = need(client.explain()).at(0);
    return told.findings.at(0).code == "slow_source" && told.findings[0].share > 0.5;
  }));
}

TEST_CASE("a session that is asked for nothing is idle", "[system]") {
  const WhyMill mill;
  Session session = mill.open();

  REQUIRE(mill.says_first(session.id(), "idle"));
}

}  // namespace
}  // namespace millrace
