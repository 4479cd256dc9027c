// Simulated FPGA cards and a host program for a while, with failures at random. MILLRACE_SOAK_SECONDS and
// MILLRACE_SOAK_SEED make it another one.
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "tests/unit/hls/card/processes.h"
#include "tests/unit/hls/card/rig.h"

namespace millrace {
namespace {

unsigned number_of(const char* name, unsigned otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

// What a card suffers next. Returns whether it makes a wrong result.
bool order_something(std::mt19937& random, const Environment& environment, pid_t host) {
  const std::string card = std::to_string(random() % 2);
  const auto order = [&](std::vector<std::string> words) {
    words.insert(words.begin(), card);
    CHECK(run_program("millrace-card", words, environment).status == 0);
  };
  const unsigned what = random() % 8;
  if (what == 0) order({"crash"});
  if (what == 1) order({"hang"});
  if (what == 2) order({"refuse", "2"});
  if (what == 3) order({"slow", "30000"});
  if (what == 4) {
    order({"crash"});
    order({"away", "150"});
  }
  if (what == 5) {
    const std::vector<pid_t> cards = processes_of_cards(host);
    if (!cards.empty()) kill(cards[random() % cards.size()], SIGKILL);
  }
  if (what == 6) order({"flip"});
  if (what == 7) order({"wrong"});
  return what >= 6;
}

struct Totals {
  long right = 0, wrong = 0, opened = 0, started = 0, called = 0;
  int hosts = 0;

  bool add(const std::string& output) {
    Totals one;
    const char* const format =
        "going\n%ld right, %ld wrong, %*d failed, %*d aborted, %ld times opened, %*d refused\n%ld started, %ld called";
    if (std::sscanf(output.c_str(), format, &one.right, &one.wrong, &one.opened, &one.started, &one.called) != 5)
      return false;
    right += one.right;
    wrong += one.wrong;
    opened += one.opened;
    started += one.started;
    called += one.called;
    ++hosts;
    return true;
  }
};

// Of a host program, fpga_card_soak_scene.cc: its way to end with commands in flight, and how many at most.
constexpr int kStartAgain = 7;
constexpr int kMostInFlight = 12;

TEST_CASE("host programs go on while their cards fail in every way", "[fpga][card]") {
  const unsigned seconds = number_of("MILLRACE_SOAK_SECONDS", 10), seed = number_of("MILLRACE_SOAK_SEED", 1);
  std::mt19937 random(seed);
  const TempFolder folder;
  const Environment environment{
      {"MILLRACE_CARD_CONTROL", folder / "control"}, {"MILLRACE_CARD_PROGRAM_MS", "20"}, {"MILLRACE_CARDS", "2"}};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  Totals totals;
  int orders = 0, spoilt = 0;
  for (auto now = std::chrono::steady_clock::now(); now < end; now = std::chrono::steady_clock::now()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - now);
    const Process host = start_scene({"soak", std::to_string(left.count())}, environment);
    REQUIRE(host.wait_for("going"));
    while (std::chrono::steady_clock::now() < end && host.running()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 200));
      spoilt += order_something(random, environment, host.pid());
      ++orders;
    }
    const auto status = host.wait(std::chrono::seconds(30));
    INFO("seed " << seed << ", " << orders << " orders\n" << host.output() << host.errors());
    REQUIRE((status == 0 || status == kStartAgain));
    REQUIRE(totals.add(host.output()));
  }

  INFO(totals.hosts << " host programs, " << orders << " orders, " << totals.right << " right, " << totals.wrong
                    << " wrong of " << spoilt << " ordered, " << totals.opened << " times opened");
  CHECK(totals.right > 100);
  CHECK(totals.wrong <= spoilt);
  CHECK(totals.opened > 2);
  CHECK(totals.called <= totals.started);
  CHECK(totals.started - totals.called <= kMostInFlight * (totals.hosts - 1));
}

}  // namespace
}  // namespace millrace
