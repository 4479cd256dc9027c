// What the service costs: images a second through daemon and client with N lanes, against a plain loop of the same
// kernels in one process with N threads. Rounds alternate, so that a noisy minute meets both.
#include <string>

#include "tests/bench/figures.h"
#include "tests/bench/plain_loop.h"
#include "tests/bench/rig.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kBatch = 64;

// Images a second of one epoch, as a training loop sees them.
double serve_epoch(Session& session, const Dataset& dataset, std::uint64_t number, std::uint32_t repeats) {
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t images = 0;
  for (std::uint32_t i = 0; i < repeats; ++i) {
    Epoch epoch = session.epoch(dataset, {.seed = 1, .epoch = number * repeats + i, .shuffle = true});
    for (const Batch& batch : epoch) images += batch.tensor.samples();
    if (!epoch.result()) give_up("an epoch failed: " + epoch.result().error().message);
  }
  return static_cast<double>(images) / seconds_since(begin);
}

void measure(const BenchOptions& options, const Report& report, std::uint32_t lanes) {
  const std::vector<std::string> files = files_in(options.data);
  const std::uint32_t rounds = options.quick ? 1 : 9;
  const std::uint32_t repeats = options.quick ? 1 : 10;  // epochs a round
  report.progress("service against a plain loop, " + std::to_string(lanes) + " lanes, " + std::to_string(rounds) +
                  " rounds of " + std::to_string(files.size() * repeats) + " images");
  Rig rig = Rig::start(options.data, lanes);
  Session session =
      must(rig.client.open_session({.name = "efficiency", .slots = 4, .batch = kBatch, .recipe = Recipe::train(224)}),
           "opening a session");
  const Dataset dataset = must(session.open_dataset(options.data), "opening the dataset");
  serve_epoch(session, dataset, 1000, 1);
  plain_loop(files, lanes, 1, 1000);

  std::vector<double> served, plain, ratios;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    served.push_back(serve_epoch(session, dataset, round, repeats));
    plain.push_back(plain_loop(files, lanes, repeats, round));
    ratios.push_back(served.back() / plain.back());
  }
  report.add({.name = "service.efficiency." + std::to_string(lanes),
              .value = median(served),
              .unit = "images/s",
              .rounds = rounds,
              .baseline = Baseline{"plain loop", median(plain), median(ratios)}});
}

}  // namespace

void run_efficiency(const BenchOptions& options, const Report& report) {
  for (const std::uint32_t lanes : {1U, 2U}) {
    if (("service.efficiency." + std::to_string(lanes)).find(options.filter) != std::string::npos)
      measure(options, report, lanes);
  }
}

}  // namespace millrace::bench
