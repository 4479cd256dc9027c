#include "tests/bench/host.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "proto/base/unique_fd.h"
#include "tests/bench/service/cores.h"

namespace millrace::bench {
namespace {

// Bytes that a process has had read from disks so far.
double bytes_of_disks(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/io");
  double value = 0;
  for (std::string name; file >> name >> value;) {
    if (name == "read_bytes:") return value;
  }
  give_up("the kernel does not say what a process has read");
}

}  // namespace

void wait_until_settled() {
  std::this_thread::sleep_for(std::chrono::seconds(3));
}

void drop_from_page_cache(const std::string& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const UniqueFd file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    ::fdatasync(file.get());
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

Photographs::Photographs(const std::string& data, std::uint32_t copies)
    : files_(files_in(data), copies), warm_(files_in(data), 1) {
  wait_until_settled();
}

Host::Host(const Photographs& photographs, Options options) : photographs_(photographs), options_(std::move(options)) {
  write_file(state_ / "millrace.toml",
             "[cache]\n" + options_.cache + kSettled + "[daemon]\nstate_dir = \"" + state_.path() + "\"\n");
  start();
}

void Host::start() {
  rig_.emplace(Rig::start(photographs_.folder(), options_.lanes,
                          {"--root", photographs_.warm_folder(), "--config", state_ / "millrace.toml"}));
  warm_up();
  for (std::uint32_t job = 0; job < options_.jobs; ++job) {
    sessions_.push_back(
        must(rig_->client.open_session({.slots = 3, .batch = 64, .recipe = Recipe::train(224)}), "opening a session"));
    datasets_.push_back(must(sessions_.back().open_dataset(photographs_.folder()), "opening the dataset"));
  }
  wait_until_filled(*rig_);
}

void Host::warm_up() {
  Session session =
      must(rig_->client.open_session({.batch = 64, .recipe = Recipe::train(224), .cache = CacheUse::kOff}),
           "opening a session");
  const Dataset dataset = must(session.open_dataset(photographs_.warm_folder()), "opening the dataset");
  for (const std::uint64_t number : {0U, 1U}) {
    Epoch epoch = session.epoch(dataset, {.epoch = number});
    for (const Batch& batch : epoch) static_cast<void>(batch);
    if (!epoch.result()) give_up("an epoch failed: " + epoch.result().error().message);
  }
}

void Host::restart() {
  datasets_.clear();
  sessions_.clear();
  must(rig_->daemon.stop(), "stopping the daemon");  // which writes what waits
  rig_.reset();
  drop_from_page_cache(state_.path());
  start();
}

Host::Cost Host::epoch(std::uint64_t number) {
  const double hits = packed_hits(), read = bytes_of_disks(rig_->daemon.pid()), before = processor();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::future<std::uint64_t>> jobs;
  for (std::size_t job = 0; job < sessions_.size(); ++job)
    jobs.push_back(std::async(std::launch::async, [this, job, number] { return run(job, number); }));
  Cost cost;
  for (auto& job : jobs) cost.images += static_cast<double>(job.get());
  cost.seconds = seconds_since(begin);
  cost.processor = processor() - before;
  cost.bytes_of_disks = bytes_of_disks(rig_->daemon.pid()) - read;
  cost.packed = packed_hits() - hits;
  return cost;
}

double Host::processor() const {
  return processor_seconds(::getpid()) + processor_seconds(rig_->daemon.pid());
}

double Host::packed_hits() {
  const Statistics statistics = must(rig_->client.statistics(), "asking for statistics");
  for (const Metric& metric : statistics.metrics) {
    if (metric.name != "millrace_cache_hits_total") continue;
    for (const LabelledValue& kind : metric.values) {
      if (kind.label == "packed") return kind.value;
    }
  }
  return 0;
}

std::uint64_t Host::run(std::size_t job, std::uint64_t number) {
  std::uint64_t images = 0;
  Epoch epoch = sessions_[job].epoch(datasets_[job],
                                     {.seed = 7 + job, .epoch = number, .shuffle = true, .on_error = OnError::kFail});
  for (const Batch& batch : epoch) images += batch.tensor.samples();
  if (!epoch.result()) give_up("an epoch failed: " + epoch.result().error().message);
  return images;
}

}  // namespace millrace::bench
