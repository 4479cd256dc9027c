// Simulated FPGA cards and a host program for a while, with failures at random. MILLRACE_SOAK_SECONDS and
// MILLRACE_SOAK_SEED make it another one.
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "tests/unit/fpga_card_processes.h"
#include "tests/unit/fpga_card_rig.h"

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

TEST_CASE("a host program goes on while its cards fail in every way", "[fpga][card]") {
  const unsigned seconds = number_of("MILLRACE_SOAK_SECONDS", 20), seed = number_of("MILLRACE_SOAK_SEED", 1);
  std::mt19937 random(seed);
  const TempFolder folder;
  const Environment environment{
      {"MILLRACE_CARD_CONTROL", folder / "control"}, {"MILLRACE_CARD_PROGRAM_MS", "20"}, {"MILLRACE_CARDS", "2"}};
  const Process host = start_scene({"soak", std::to_string(seconds * 1000)}, environment);
  REQUIRE(host.wait_for("going"));

  int orders = 0, spoilt = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 200));
    spoilt += order_something(random, environment, host.pid());
    ++orders;
  }
  const auto status = host.wait(std::chrono::seconds(30));

  INFO("seed " << seed << ", " << orders << " orders\n" << host.output() << host.errors());
  CHECK(status == 0);
  long right = 0, wrong = 0, opened = 0, started = 0, called = 0;
  const std::string output = host.output();
  REQUIRE(std::sscanf(output.c_str(),
                      "going\n%ld right, %ld wrong, %*d failed, %*d aborted, %ld times opened, %*d refused\n"
                      "%ld started, %ld called",
                      &right, &wrong, &opened, &started, &called) == 5);
  CHECK(right > 100);
  CHECK(wrong <= spoilt);
  CHECK(opened > 2);
  CHECK(started == called);
}

}  // namespace
}  // namespace millrace
