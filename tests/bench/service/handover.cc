// From a sealed slot in the daemon to a mapped view in the client's hand, and from submit() to that view. The batch is
// not decoded (the fake backend, instant) and its files are tiny, for only the daemon's own work counts;
// CLOCK_MONOTONIC is one clock for all processes of a host.
#include <cmath>
#include <string>

#include "tests/bench/figures.h"
#include "tests/bench/rig.h"
#include "tests/bench/service/transports.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kSide = 224;
constexpr std::uint32_t kSamples = 256;
constexpr std::size_t kBatchBytes = std::size_t{kSamples} * kSide * kSide * 3;  // 38.5 MB

Recipe plain_recipe() {
  return {.resize = ExactSize{{kSide, kSide}}, .layout = Layout::kNhwc};
}

// Microseconds until the view, one batch each.
struct Times {
  std::vector<double> from_seal, from_submit;
};

void hand_over_once(Session& session, const BatchRequest& request, Times& times) {
  const auto begin = std::chrono::steady_clock::now();
  must(session.submit(request), "submitting");
  const Batch batch = must(session.next(), "waiting for the batch");
  if (batch.failure) give_up("a batch failed: " + batch.failure->message);
  const auto seen = std::chrono::steady_clock::now();
  const volatile std::byte first = batch.tensor.data().front();
  static_cast<void>(first);
  times.from_seal.push_back(std::chrono::duration<double, std::micro>(seen - batch.tensor.sealed_at()).count());
  times.from_submit.push_back(std::chrono::duration<double, std::micro>(seen - begin).count());
}

Times hand_over(Rig& rig, const std::string& folder, std::uint32_t samples, std::uint32_t rounds) {
  Session session =
      must(rig.client.open_session({.name = "handover", .slots = 2, .batch = samples, .recipe = plain_recipe()}),
           "opening a session");
  const Dataset dataset = must(session.open_dataset(folder), "opening the dataset");
  BatchRequest request;
  for (std::uint32_t i = 0; i < samples; ++i)
    request.samples.push_back(Sample{.source = DatasetSample{dataset.id(), i % dataset.samples()}});
  request.backend = "fake";
  wait_until_filled(rig);
  Times times, warm_up;
  for (std::uint32_t i = 0; i < 5; ++i) hand_over_once(session, request, warm_up);
  for (std::uint32_t i = 0; i < rounds; ++i) hand_over_once(session, request, times);
  return times;
}

Figure against(std::string name, double value, std::uint32_t rounds, std::string other, double other_value) {
  return {.name = std::move(name),
          .value = value,
          .unit = "us",
          .rounds = rounds,
          .baseline = Baseline{std::move(other), other_value, value / other_value}};
}

void report_submit_to_view(const Report& report, const std::vector<double>& from_submit,
                           const std::vector<double>& from_seal) {
  const auto rounds = static_cast<std::uint32_t>(from_submit.size());
  const auto whole = [](double value) { return std::to_string(std::lround(value)); };
  report.add({.name = "latency.submit_to_view",
              .value = median(from_submit),
              .unit = "us",
              .rounds = rounds,
              .baseline = {},
              .note = "of which " + whole(median(from_seal)) + " us from the seal on; p99 " +
                      whole(percentile(from_submit, 99)) + " us"});
}

}  // namespace

void run_handover(const BenchOptions& options, const Report& report) {
  const TinyFiles files(kSamples);
  Rig rig = Rig::start(files.path(), 1, {"--fake", "instant=1"});
  const std::uint32_t rounds = options.quick ? 20 : 300;
  report.progress("hand-over of 38.5 MB, " + std::to_string(rounds) + " rounds");
  const Times times = hand_over(rig, files.path(), kSamples, rounds);
  const std::vector<double>& shared = times.from_seal;
  const std::uint32_t copies = options.quick ? 5 : 50;
  report.progress("the same through a pipe and through gRPC bytes");
  const std::vector<double> piped = through_pipe(kBatchBytes, copies);
  const std::vector<double> grpc = through_grpc(kBatchBytes, copies);
  report.add(against("handover.p50", median(shared), rounds, "pipe", median(piped)));
  report.add(against("handover.p50", median(shared), rounds, "grpc bytes", median(grpc)));
  report.add(against("handover.p99", percentile(shared, 99), rounds, "pipe.p99", percentile(piped, 99)));
  report_submit_to_view(report, times.from_submit, shared);
  const std::uint32_t large_rounds = options.quick ? 5 : 60;
  report.progress("hand-over of 385 MB");
  const std::vector<double> large = hand_over(rig, files.path(), kSamples * 10, large_rounds).from_seal;
  report.add(against("handover.x10.p50", median(large), large_rounds, "handover.p50", median(shared)));
}

}  // namespace millrace::bench
