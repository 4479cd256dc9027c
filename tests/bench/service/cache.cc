// What the cache brings: the first epochs of a folder that nobody has touched, packed forms from disk after a restart,
// and four jobs at once on one dataset. Through the real daemon; each round with daemons and state of its own.
#include <string>
#include <vector>

#include "tests/bench/figures.h"
#include "tests/bench/host.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kCopies = 12;
constexpr std::uint32_t kJobs = 4;

void compare_epochs(const Photographs& photographs, std::uint32_t rounds, const Report& report) {
  report.progress("epochs 1 to 4 of a new folder, " + std::to_string(rounds) + " rounds");
  constexpr std::size_t kEpochs = 4;
  std::vector<double> kept[kEpochs], plain[kEpochs];
  for (std::uint32_t round = 0; round < rounds; ++round) {
    Host keeps(photographs, {}), keeps_nothing(photographs, {.cache = Host::kNothingKept});
    for (std::size_t epoch = 0; epoch < kEpochs; ++epoch) {
      plain[epoch].push_back(keeps_nothing.epoch(epoch).rate());
      kept[epoch].push_back(keeps.epoch(epoch).rate());
    }
  }
  for (std::size_t epoch = 0; epoch < kEpochs; ++epoch)
    report.add(compared({.name = "cache.epoch." + std::to_string(epoch + 1), .unit = "images/s"}, kept[epoch],
                        "nothing kept", plain[epoch]));
}

// Not where no picture is kept on disk: /tmp is a tmpfs or an overlayfs, or nothing can be packed.
void measure_disk(const Photographs& photographs, std::uint32_t rounds, const Report& report) {
  report.progress("packed forms from disk, " + std::to_string(rounds) + " rounds");
  std::vector<double> from_disk, from_memory, speeds;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    Host host(photographs, {.cache = Host::kAlsoOnDisk});
    for (const std::uint64_t number : {0U, 1U}) host.epoch(number);
    const Host::Cost memory = host.epoch(2);
    host.restart();
    const Host::Cost disk = host.epoch(3);
    if (memory.packed == 0 || disk.packed < 0.9 * memory.packed)
      return report.progress("cache.disk: nothing of it: few pictures were kept on the disk that /tmp is on");
    from_memory.push_back(memory.rate());
    from_disk.push_back(disk.rate());
    speeds.push_back(disk.bytes_of_disks / disk.seconds / 1e6);
  }
  report.add(compared({.name = "cache.disk", .unit = "images/s"}, from_disk, "packed from memory", from_memory));
  report.add({.name = "cache.disk.read",
              .value = median(speeds),
              .unit = "MB/s",
              .rounds = rounds,
              .note = "what the kernel read from the disk meanwhile"});
}

void compare_sharing(const Photographs& photographs, std::uint32_t rounds, const Report& report) {
  report.progress("four jobs against one, " + std::to_string(rounds) + " rounds");
  std::vector<double> first, first_alone, later, later_alone;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    Host four(photographs, {.jobs = kJobs}), one(photographs, {});
    Host keeps_nothing(photographs, {.cache = Host::kNothingKept});
    first_alone.push_back(keeps_nothing.epoch(0).processor);
    first.push_back(four.epoch(0).processor);
    for (const std::uint64_t number : {0U, 1U, 2U}) {
      one.epoch(number);
      four.epoch(number + 1);
    }
    later_alone.push_back(one.epoch(3).processor);
    later.push_back(four.epoch(4).processor);
  }
  report.add(compared({.name = "cache.share.4.first", .unit = "s"}, first, "one job, nothing kept", first_alone));
  report.add(compared({.name = "cache.share.4.later", .unit = "s"}, later, "one job, packed", later_alone));
}

}  // namespace

void run_cache(const BenchOptions& options, const Report& report) {
  const Photographs photographs(options.data, options.quick ? 1 : kCopies);
  const std::uint32_t rounds = options.quick ? 1 : 5;
  const auto run = [&](const std::string& names, auto measure) {
    if (names.find(options.filter) != std::string::npos) measure(photographs, rounds, report);
  };
  run("cache.epoch.1 cache.epoch.2 cache.epoch.3 cache.epoch.4", compare_epochs);
  run("cache.disk cache.disk.read", measure_disk);
  run("cache.share.4.first cache.share.4.later", compare_sharing);
}

}  // namespace millrace::bench
