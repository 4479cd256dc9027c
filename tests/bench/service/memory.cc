// Resident memory of the daemon beyond the segments: four sessions, two lanes; and whether it grows over a million
// samples.
#include <array>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/bench/figures.h"
#include "tests/bench/rig.h"

namespace millrace::bench {
namespace {

// MiB of anonymous and file-backed memory; shared memory (the segments) is counted apart.
double resident(std::int32_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  double kib = 0;
  for (std::string line; std::getline(status, line);) {
    std::istringstream fields(line);
    std::string key;
    double value = 0;
    fields >> key >> value;
    if (key == "RssAnon:" || key == "RssFile:") kib += value;
  }
  if (kib == 0) give_up("the daemon is gone");
  return kib / 1024;
}

void serve(Session& session, const Dataset& dataset, std::uint64_t epoch_number) {
  Epoch epoch = session.epoch(dataset, {.epoch = epoch_number, .shuffle = true, .on_error = OnError::kFail});
  for (const Batch& batch : epoch) static_cast<void>(batch);
  if (!epoch.result()) give_up("an epoch failed: " + epoch.result().error().message);
}

struct Consumer {
  Session session;
  Dataset dataset;
};

std::vector<Consumer> open_sessions(Rig& rig, const std::string& folder, std::uint32_t side, std::uint32_t batch) {
  std::vector<Consumer> consumers;
  for (int i = 0; i < 4; ++i) {
    Session session =
        must(rig.client.open_session({.slots = 3, .batch = batch, .recipe = Recipe::train(side)}), "opening a session");
    Dataset dataset = must(session.open_dataset(folder), "opening the dataset");
    consumers.push_back(Consumer{std::move(session), std::move(dataset)});
  }
  return consumers;
}

}  // namespace

void run_memory(const BenchOptions& options, const Report& report) {
  const TinyFiles tiny(1000);
  Rig rig = Rig::start(options.data, 2, {"--root", tiny.path()});
  std::vector<Consumer> consumers = open_sessions(rig, options.data, 224, 64);
  double most = 0;
  const std::uint64_t epochs = options.quick ? 1 : 8;
  report.progress("memory with photographs");
  for (std::uint64_t i = 0; i < epochs; ++i) {
    for (Consumer& consumer : consumers) serve(consumer.session, consumer.dataset, i);
    most = std::max(most, resident(rig.daemon.pid()));
  }
  report.add({.name = "daemon.rss",
              .value = most,
              .unit = "MiB",
              .rounds = static_cast<std::uint32_t>(epochs * 4),
              .note = "beyond the segments, 4 sessions, 2 lanes, photographs"});

  // Tiny files, so that a million of them take a minute.
  const std::uint64_t wanted = options.quick ? 5'000 : 1'000'000;
  report.progress("memory over " + std::to_string(wanted) + " samples");
  BatchRequest request{.recipe = Recipe{.resize = ExactSize{{8, 8}}}};
  for (const std::string& file : files_in(tiny.path())) request.samples.push_back(Sample{.source = Path{file}});
  Session& session = consumers.front().session;
  double first = 0;
  for (std::uint64_t done = 0; done < wanted; done += request.samples.size()) {
    must(session.submit(request), "submitting");
    const Batch batch = must(session.next(), "waiting");
    if (batch.failure) give_up("a batch failed: " + batch.failure->message);
    if (first == 0 && done >= wanted / 10) first = resident(rig.daemon.pid());
  }
  const double last = resident(rig.daemon.pid());
  report.add({.name = "daemon.rss.growth",
              .value = last,
              .unit = "MiB",
              .rounds = 1,
              .baseline = Baseline{"after a tenth", first, last / first},
              .note = std::to_string(wanted) + " samples"});
}

}  // namespace millrace::bench
