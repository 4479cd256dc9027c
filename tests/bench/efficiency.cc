// What the service costs: images a second through daemon and client with N lanes, against a plain loop of the same
// kernels in one process with N threads. Rounds alternate, so that a noisy minute meets both.
#include <string>

#include "tests/bench/figures.h"
#include "tests/bench/plain_loop.h"
#include "tests/bench/rig.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kBatch = 64;

constexpr std::uint32_t kCopies = 10;

// The photographs `copies` times, in a folder that goes with its owner.
class RepeatedFolder {
 public:
  RepeatedFolder(const std::vector<std::string>& files, std::uint32_t copies) {
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      for (const std::string& file : files) {
        const std::string name = std::to_string(copy) + "_" + std::filesystem::path(file).filename().string();
        std::filesystem::copy_file(file, folder_ / name, std::filesystem::copy_options::overwrite_existing);
      }
    }
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

// Images a second of one epoch, as a training loop sees them.
double serve_epoch(Session& session, const Dataset& dataset, std::uint64_t number) {
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t images = 0;
  Epoch epoch = session.epoch(dataset, {.seed = 1, .epoch = number, .shuffle = true});
  for (const Batch& batch : epoch) images += batch.tensor.samples();
  if (!epoch.result()) give_up("an epoch failed: " + epoch.result().error().message);
  return static_cast<double>(images) / seconds_since(begin);
}

void measure(const BenchOptions& options, const Report& report, std::uint32_t lanes) {
  const RepeatedFolder folder(files_in(options.data), options.quick ? 1 : kCopies);
  const std::vector<std::string> files = files_in(folder.path());
  const std::uint32_t rounds = options.quick ? 1 : 9;
  report.progress("service against a plain loop, " + std::to_string(lanes) + " lanes, " + std::to_string(rounds) +
                  " rounds of " + std::to_string(files.size()) + " images");
  Rig rig = Rig::start(folder.path(), lanes);
  Session session =
      must(rig.client.open_session({.name = "efficiency", .slots = 4, .batch = kBatch, .recipe = Recipe::train(224)}),
           "opening a session");
  const Dataset dataset = must(session.open_dataset(folder.path()), "opening the dataset");
  serve_epoch(session, dataset, 1000);
  plain_loop(files, lanes, 1000);

  std::vector<double> served, plain, ratios;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    served.push_back(serve_epoch(session, dataset, round));
    plain.push_back(plain_loop(files, lanes, round));
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
