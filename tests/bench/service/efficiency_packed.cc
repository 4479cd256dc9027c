// What the service costs once photographs come from packed forms: images a second through daemon and client with N
// lanes, out of memory and, after a restart, off the disk, against a plain loop of the same kernels over packed forms in
// memory with N threads. Rounds alternate.
#include <string>
#include <vector>

#include "tests/bench/engine/plain_loop.h"
#include "tests/bench/figures.h"
#include "tests/bench/host.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kPackedCopies = 12;

struct Rates {
  std::vector<double> memory, disk, loop;  // images/s
};

Rates measure(const Photographs& photographs, const PackedFiles& packed, std::uint32_t lanes, std::uint32_t rounds) {
  Rates rates;
  packed.loop(lanes, 1000);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    Host host(photographs, {.cache = Host::kAlsoOnDisk, .lanes = lanes});
    for (const std::uint64_t number : {0U, 1U}) host.epoch(number);
    const Host::Cost memory = host.epoch(2);
    if (memory.packed == 0) give_up("no photograph came from a packed form");
    rates.memory.push_back(memory.rate());
    rates.loop.push_back(packed.loop(lanes, round));
    host.restart();
    const Host::Cost disk = host.epoch(3);
    if (disk.packed >= 0.9 * memory.packed) rates.disk.push_back(disk.rate());
  }
  return rates;
}

}  // namespace

void run_efficiency_packed(const BenchOptions& options, const Report& report) {
  const Photographs photographs(options.data, options.quick ? 1 : kPackedCopies);
  const PackedFiles packed(files_in(photographs.folder()));
  const std::uint32_t rounds = options.quick ? 1 : 5;
  for (const std::uint32_t lanes : {1U, 2U}) {
    const std::string suffix = std::to_string(lanes), loop = "plain loop over packed forms in memory";
    const std::string in_memory = "service.efficiency.packed." + suffix,
                      from_disk = "service.efficiency.disk." + suffix;
    if ((in_memory + " " + from_disk).find(options.filter) == std::string::npos) continue;
    report.progress("service against a plain loop, packed, " + suffix + " lanes, " + std::to_string(rounds) +
                    " rounds");
    const Rates rates = measure(photographs, packed, lanes, rounds);
    report.add(compared({.name = in_memory, .unit = "images/s"}, rates.memory, loop, rates.loop));
    if (rates.disk.size() == rates.loop.size())
      report.add(compared({.name = from_disk, .unit = "images/s"}, rates.disk, loop, rates.loop));
    else
      report.progress(from_disk + ": nothing of it: few pictures were kept on the disk that /tmp is on");
  }
}

}  // namespace millrace::bench
