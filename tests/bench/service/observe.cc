// What it costs to look: images a second while statistics are asked for once a second and everything is recorded, beside
// epochs that nobody looks at.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/figures.h"
#include "tests/bench/service/service.h"
#include "tests/support/host/process.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kObservedLanes = 2;

// `millrace trace` and somebody who asks once a second, for as long as it lives.
class Observers {
 public:
  Observers(const std::string& socket, const std::string& file)
      : recording_(
            Process::spawn({.argv = {bin_folder() + "/millrace", "trace", "600", "-o", file, "--socket", socket}})),
        asking_([this, socket] { ask(socket); }) {
    while (!std::filesystem::exists(file) || std::filesystem::file_size(file) == 0) {
      if (!recording_.running()) give_up("millrace trace: " + recording_.errors());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  ~Observers() {
    ended_ = true;
    asking_.join();
    recording_.kill(SIGINT);
    recording_.wait();
  }
  Observers(const Observers&) = delete;
  Observers& operator=(const Observers&) = delete;

 private:
  void ask(const std::string& socket) {
    Client client = must(Client::connect(socket), "connecting");
    for (std::uint64_t tenths = 0; !ended_; ++tenths) {
      if (tenths % 10 == 0) must(client.statistics(), "asking for statistics");
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  std::atomic<bool> ended_{false};
  Process recording_;
  std::thread asking_;
};

struct Looked {
  std::vector<double> with, without;
  std::uintmax_t bytes = 0;  // of the largest file
};

Looked look_at(Service& service, std::uint32_t rounds, std::uint32_t epochs) {
  const TempFolder folder;
  const std::string file = folder / "trace";
  Looked looked;
  std::uint64_t number = 0;
  const auto rate = [&] {
    std::vector<double> rates;
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) rates.push_back(service.epoch(number++));
    return median(rates);
  };
  service.epoch(number++);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const bool is_first = round % 2 == 0;  // the host may change meanwhile
    if (is_first) looked.without.push_back(rate());
    {
      std::filesystem::remove(file);
      const Observers observers(service.socket(), file);
      looked.with.push_back(rate());
    }
    if (!is_first) looked.without.push_back(rate());
    looked.bytes = std::max(looked.bytes, std::filesystem::file_size(file));
  }
  return looked;
}

void add_looked(const Report& report, const std::string& name, std::uint32_t rounds, const Looked& looked) {
  Figure figure{.name = name,
                .unit = "images/s",
                .rounds = rounds,
                .note = "recorded, and asked once a second; a file of " + to_text(Bytes{looked.bytes})};
  report.add(compared(std::move(figure), looked.with, "nobody looks", looked.without));
}

}  // namespace

void run_observe(const BenchOptions& options, const Report& report) {
  const std::uint32_t rounds = options.quick ? 1 : 10;
  report.progress("epochs with and without somebody who looks, " + std::to_string(rounds) + " rounds");
  constexpr std::uint32_t kObservedCopies = 10;
  const RepeatedFolder folder(files_in(options.data), options.quick ? 1 : kObservedCopies);
  Service photographs(folder.path(), kObservedLanes);
  add_looked(report, "observe.cost", rounds, look_at(photographs, rounds, 1));
}

void run_observe_tiny(const BenchOptions& options, const Report& report) {
  constexpr std::uint32_t kObservedBatch = 256;
  const std::uint32_t rounds = options.quick ? 1 : 10;
  report.progress("tiny files with and without somebody who looks, " + std::to_string(rounds) + " rounds");
  const TinyFiles files(options.quick ? 1'000 : 10'000);
  Service tiny(files.path(), kObservedLanes, Recipe{.resize = ExactSize{{8, 8}}}, kObservedBatch);
  add_looked(report, "observe.cost.tiny", rounds, look_at(tiny, rounds, options.quick ? 1 : 5));
}

}  // namespace millrace::bench
