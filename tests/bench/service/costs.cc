// What accounts of costs take, and whether they add up: jobs and the daemon's own beside what the kernel says.
#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/bench/figures.h"
#include "tests/bench/service/accounting.h"
#include "tests/bench/service/cores.h"
#include "tests/bench/service/service.h"

namespace millrace::bench {
namespace {

// Of the threads of these names, and of the daemon.
struct Kernels {
  double lanes, fetch, control, all;
};

Kernels kernels(pid_t daemon) {
  return {thread_seconds(daemon, "mr-lane-"), thread_seconds(daemon, "mr-fetch-"), thread_seconds(daemon, "mr-control"),
          processor_seconds(daemon)};
}

}  // namespace

void run_costs(const BenchOptions& options, const Report& report) {
  const std::uint32_t rounds = options.quick ? 1 : 15;
  report.progress("accounts of costs, " + std::to_string(rounds) + " rounds");
  for (const std::uint32_t batch : {64U, 8U, 1U}) {
    std::vector<double> nanoseconds;
    for (std::uint32_t round = 0; round < rounds; ++round) nanoseconds.push_back(accounting_nanoseconds(batch));
    report.add({.name = "cost.accounts." + std::to_string(batch),
                .value = median(nanoseconds),
                .unit = "ns/image",
                .rounds = rounds,
                .note = "of the control thread, batches of " + std::to_string(batch)});
  }

  const RepeatedFolder folder(files_in(options.data), options.quick ? 1 : 10);
  Service service(folder.path(), 2);
  const std::uint32_t epochs = options.quick ? 1 : 20;
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) service.epoch(epoch);
  const Statistics told = service.statistics();
  const Kernels kernel = kernels(service.daemon_pid());
  const Cost& cost = told.jobs.at(0).cost;
  const auto share = [](double part, double whole) { return one_decimal(100 * part / whole) + " %"; };
  report.add({.name = "cost.sum",
              .value = (cost.cpu() + told.own->cpu()).count() / kernel.all,
              .unit = "",
              .rounds = 1,
              .note = "job and own beside the kernel's figure; of its figures of threads the job has " +
                      share(cost.lane_cpu.count(), kernel.lanes) + " of lanes, " +
                      share(cost.fetch_cpu.count(), kernel.fetch) + " of fetch threads, " +
                      share(cost.control_cpu.count(), kernel.control) + " of the control thread"});
}

}  // namespace millrace::bench
