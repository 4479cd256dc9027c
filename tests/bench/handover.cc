// From a sealed slot in the daemon to a mapped view in the client's hand. The batch is not decoded (the fake backend,
// instant) and its files are tiny, for only the hand-over counts; CLOCK_MONOTONIC is one clock for all processes of a
// host.
#include <string>

#include "tests/bench/figures.h"
#include "tests/bench/rig.h"
#include "tests/bench/transports.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kSide = 224;
constexpr std::uint32_t kSamples = 256;
constexpr std::size_t kBatchBytes = std::size_t{kSamples} * kSide * kSide * 3;  // 38.5 MB

Recipe plain_recipe() {
  return {.resize = ExactSize{{kSide, kSide}}, .layout = Layout::kNhwc};
}

// Microseconds from seal to view.
double hand_over_once(Session& session, const BatchRequest& request) {
  must(session.submit(request), "submitting");
  const Batch batch = must(session.next(), "waiting for the batch");
  if (batch.failure) give_up("a batch failed: " + batch.failure->message);
  const auto seen = std::chrono::steady_clock::now();
  const volatile std::byte first = batch.tensor.data().front();
  static_cast<void>(first);
  return std::chrono::duration<double, std::micro>(seen - batch.tensor.sealed_at()).count();
}

std::vector<double> hand_over(Rig& rig, const std::string& folder, std::uint32_t samples, std::uint32_t rounds) {
  Session session =
      must(rig.client.open_session({.name = "handover", .slots = 2, .batch = samples, .recipe = plain_recipe()}),
           "opening a session");
  const Dataset dataset = must(session.open_dataset(folder), "opening the dataset");
  BatchRequest request;
  for (std::uint32_t i = 0; i < samples; ++i)
    request.samples.push_back(Sample{.source = DatasetSample{dataset.id(), i % dataset.samples()}});
  request.backend = "fake";
  std::vector<double> times;
  for (std::uint32_t i = 0; i < rounds + 5; ++i) {
    const double time = hand_over_once(session, request);
    if (i >= 5) times.push_back(time);  // the first ones warm up
  }
  return times;
}

Figure against(std::string name, double value, std::uint32_t rounds, std::string other, double other_value) {
  return {.name = std::move(name),
          .value = value,
          .unit = "us",
          .rounds = rounds,
          .baseline = Baseline{std::move(other), other_value, value / other_value}};
}

}  // namespace

void run_handover(const BenchOptions& options, const Report& report) {
  const TinyFiles files(kSamples);
  Rig rig = Rig::start(files.path(), 1, {"--fake", "instant=1"});
  const std::uint32_t rounds = options.quick ? 20 : 300;
  report.progress("hand-over of 38.5 MB, " + std::to_string(rounds) + " rounds");
  const std::vector<double> shared = hand_over(rig, files.path(), kSamples, rounds);
  const std::uint32_t copies = options.quick ? 5 : 50;
  report.progress("the same through a pipe and through gRPC bytes");
  const std::vector<double> piped = through_pipe(kBatchBytes, copies);
  const std::vector<double> grpc = through_grpc(kBatchBytes, copies);
  report.add(against("handover.p50", median(shared), rounds, "pipe", median(piped)));
  report.add(against("handover.p50", median(shared), rounds, "grpc bytes", median(grpc)));
  report.add(against("handover.p99", percentile(shared, 99), rounds, "pipe.p99", percentile(piped, 99)));
  const std::uint32_t large_rounds = options.quick ? 5 : 60;
  report.progress("hand-over of 385 MB");
  const std::vector<double> large = hand_over(rig, files.path(), kSamples * 10, large_rounds);
  report.add(against("handover.x10.p50", median(large), large_rounds, "handover.p50", median(shared)));
}

}  // namespace millrace::bench
