// Two cards and every fault at once, by the clock: `millrace_system_fpga_soak [--seconds 60] [--seed N]`.
//
// Epoch after epoch through a daemon with two simulated cards, while the cards and the processes that own them are killed and
// stopped: every sample comes exactly once, with the pixels that the processor makes of it, whichever device made it.
// In the end both cards are ready again.
//
// What happens when is drawn from the seed, which is printed first. Exit status: 0 all held, 1 something did not.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <random>
#include <string>
#include <thread>

#include "tests/support/host/cards.h"
#include "tests/support/host/eventually.h"
#include "tests/support/skip.h"
#include "tests/system/devices/card_mill.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Options {
  std::uint32_t seconds = 60;
  std::uint64_t seed = 0;  // 0: a new one
};

class Soak {
 public:
  explicit Soak(const Options& options)
      : options_(options),
        random_(options.seed),
        mill_({.cards = 2, .settings = "hang_milliseconds = 500\n", .ordered = true}) {}

  bool run() {
    const CardEpoch expected = run_epoch(mill_, "cpu");
    if (!expected.errors.empty() || expected.tensors.size() != kCardImages) return broken("without a card");
    const Clock::time_point end = Clock::now() + std::chrono::seconds(options_.seconds);
    while (Clock::now() < end) {
      const CardEpoch made = run_epoch(mill_, "", [&] { go_wrong(); });
      ++epochs_;
      for (const auto& [backend, count] : made.by_backend) by_backend_[backend] += count;
      if (!made.errors.empty()) return broken(made.errors.front());
      if (made.tensors.size() != kCardImages) return broken("samples are missing");
      if (made.tensors != expected.tensors) return broken("pixels are others");
    }
    tell();
    if (by_backend_["fpga:0"] == 0 || by_backend_["fpga:1"] == 0) return broken("a card has made nothing");
    const bool back = eventually([&] { return mill_.device("fpga:0").ready && mill_.device("fpga:1").ready; }, 90s);
    return back || broken("a card has not come back");
  }

 private:
  // Once both cards have been ready for a while, in the middle of an epoch.
  void go_wrong() {
    if (Clock::now() < next_) return;
    next_ = Clock::now() + 200ms;
    if (!mill_.device("fpga:0").ready || !mill_.device("fpga:1").ready) return;
    next_ = Clock::now() + std::chrono::milliseconds(500 + random_() % 2000);
    const auto card = static_cast<std::uint32_t>(random_() % 2);
    const std::vector<pid_t> owners = mill_.owners();
    if (owners.size() != 2) return;
    ++harmed_;
    const std::vector<pid_t> devices = mill_.cards(owners[card]);
    switch (random_() % 7) {
      case 0:
        ::kill(owners[card], SIGKILL);
        return;
      case 1:
        ::kill(owners[card], SIGSTOP);
        return;
      case 2:
        if (!devices.empty()) ::kill(devices.front(), SIGKILL);
        return;
      default: {
        constexpr const char* kFaults[] = {"crash", "hang", "flip", "wrong"};
        order_fault(mill_.control(), card, kFaults[random_() % 4]);
      }
    }
  }

  void tell() {
    std::printf("epochs %u, processes harmed %u; samples of fpga:0 %u, fpga:1 %u, cpu %u; lost batches %.0f\n", epochs_,
                harmed_, by_backend_["fpga:0"], by_backend_["fpga:1"], by_backend_["cpu"],
                mill_.daemon.metric("millrace_card_losses_total"));
  }

  bool broken(const std::string& what) {
    std::printf("BROKEN: %s (seed %llu)\n", what.c_str(), static_cast<unsigned long long>(options_.seed));
    const std::string log = mill_.daemon.errors();
    std::printf("the end of the daemon's log:\n%s\n",
                log.substr(log.size() - std::min<std::size_t>(log.size(), 4'000)).c_str());
    return false;
  }

  const Options options_;
  std::mt19937_64 random_;
  CardMill mill_;
  std::map<std::string, std::uint32_t> by_backend_;
  std::uint32_t epochs_ = 0, harmed_ = 0;
  Clock::time_point next_ = Clock::now();
};

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  Options options;
  CLI::App app{"Epochs through two simulated cards that fail"};
  app.add_option("--seconds", options.seconds, "How long")->capture_default_str()->check(CLI::Range(1, 86'400));
  app.add_option("--seed", options.seed, "Of all that happens; 0: a new one, which is printed")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (!has_cards()) {
    skip_loudly("FPGA cards: this build found no libxrt-dev of Debian's");
    return 0;
  }
  if (options.seed == 0) options.seed = std::random_device{}() + 1ULL;
  std::printf("seed %llu, %u s\n", static_cast<unsigned long long>(options.seed), options.seconds);
  try {
    return Soak(options).run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("BROKEN: %s (seed %llu)\n", error.what(), static_cast<unsigned long long>(options.seed));
    return 1;
  }
}
