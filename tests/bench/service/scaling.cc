// What a second core gains: images a second with daemon and client confined to two cores, against one. Rounds
// alternate.
#include <unistd.h>

#include <string>

#include "tests/bench/figures.h"
#include "tests/bench/service/cores.h"
#include "tests/bench/service/service.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kScalingCopies = 10;

// An epoch with everything that takes part on `cores`.
double epoch_on(const std::vector<int>& cores, Service& service, std::uint64_t number) {
  confine(::getpid(), cores);
  confine(service.daemon_pid(), cores);
  return service.epoch(number);
}

}  // namespace

void run_scaling(const BenchOptions& options, const Report& report) {
  const std::vector<int> two = separate_cores(2);
  if (two.size() < 2) return report.progress("daemon.scaling: left out, it needs two cores");
  const std::vector<int> one{two.front()};
  const RepeatedFolder folder(files_in(options.data), options.quick ? 1 : kScalingCopies);
  const std::uint32_t rounds = options.quick ? 1 : 9;
  report.progress("one core against two, " + std::to_string(rounds) + " rounds");
  Service single(folder.path(), 1);
  Service twin(folder.path(), 2);
  epoch_on(one, single, 1000);
  epoch_on(two, twin, 1000);

  std::vector<double> on_one, on_two, ratios;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    on_one.push_back(epoch_on(one, single, round));
    on_two.push_back(epoch_on(two, twin, round));
    ratios.push_back(on_two.back() / on_one.back());
  }
  report.add({.name = "daemon.scaling",
              .value = median(on_two),
              .unit = "images/s",
              .rounds = rounds,
              .baseline = Baseline{"one core", median(on_one), median(ratios)}});
}

}  // namespace millrace::bench
