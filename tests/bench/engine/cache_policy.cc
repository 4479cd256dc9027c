// The table of the cache's policy: what it saves on made-up traces beside simpler ones and beside the best that anybody
// could who knows the future (tests/support/policy/best_flow.h).
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/cache/policy/use_table.h"
#include "daemon/plan/epoch_order.h"
#include "tests/support/policy/cache_judge.h"
#include "tests/support/policy/judged_traces.h"

namespace {

using millrace::test::CacheJudge;
using millrace::test::Judged;
using millrace::test::JudgedTrace;
using millrace::test::MakeAt;
using Knowing = CacheJudge::Knowing;

// One JSON object a line in the place of what people read.
bool json = false;

void row(const std::string& trace, const char* who, const Judged& judged, double best) {
  if (json)
    std::printf("{\"trace\": \"%s\", \"who\": \"%s\", \"hit_ratio\": %.4f, \"of_best\": %.4f}\n", trace.c_str(), who,
                judged.hit_ratio(), judged.seconds / best);
  else
    std::printf("  %-34s hits %5.1f %%   made %6llu   saved %9.1f s   %5.1f %% of the best\n", who,
                100 * judged.hit_ratio(), static_cast<unsigned long long>(judged.made), judged.seconds,
                100 * judged.seconds / best);
}

// Nanoseconds of each call, with four sessions on four datasets of 320,000 samples of which a quarter is in.
void time_calls() {
  constexpr std::uint32_t kSamples = 320'000, kDatasets = 4, kCalls = 100'000;
  millrace::UseTable table;
  std::vector<std::unique_ptr<millrace::DatasetUse>> uses;
  const auto member = [](std::uint32_t i) {
    return millrace::DatasetMember{millrace::DatasetNumber{i % kDatasets + 1}, i / kDatasets % kSamples, 1};
  };
  for (std::uint32_t number = 1; number <= kDatasets; ++number) {
    const millrace::Dataset dataset("/made/up", "", std::vector<millrace::Dataset::Entry>(kSamples), {}, 1, {}, {},
                                    millrace::DatasetNumber{number});
    uses.push_back(table.begin(dataset));
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      millrace::EpochOrderSpec spec{
          .samples = kSamples, .seed = number, .epoch = epoch, .shuffle = millrace::Shuffle::kYes};
      millrace::EpochBegun begun{.order = spec, .samples = kSamples};
      begun.positions =
          std::make_shared<const millrace::EpochPositions>(millrace::EpochOrder::create(spec)->positions());
      ++spec.epoch;
      begun.next = std::make_shared<const millrace::EpochPositions>(millrace::EpochOrder::create(spec)->positions());
      uses.back()->epoch_begun(std::move(begun), 100.0 * static_cast<double>(epoch));
      uses.back()->reached(kSamples / 2);
    }
  }
  millrace::Policy policy({.budget = millrace::Bytes{kSamples}});
  const auto forecast = table.forecast();
  const auto piece = [&](std::uint32_t i, float costs) {
    return millrace::Policy::Piece{
        .member = member(i), .kind = millrace::CachedKind::kPacked, .bytes = 1, .saves = 0.5F, .costs = costs};
  };
  std::vector<millrace::Policy::Ticket> gone;
  double now = 150;
  const auto time = [&](const char* what, auto&& call) {
    const auto begun = std::chrono::steady_clock::now();
    for (std::uint32_t i = 0; i < kCalls; ++i) call(i);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    if (json)
      std::printf("{\"call\": \"%s\", \"ns\": %.0f}\n", what, took.count() / kCalls);
    else
      std::printf("  %-44s %8.0f ns\n", what, took.count() / kCalls);
  };
  for (std::uint32_t i = 0; i < kSamples; ++i) policy.admit(piece(i, 0), *forecast, now, gone);
  if (!json) std::printf("calls, %zu entries of %u datasets in use\n", policy.entries(), kDatasets);
  time("asked", [&](std::uint32_t i) { policy.asked(member(i), *forecast, now); });
  time("accessed", [&](std::uint32_t i) { policy.accessed(i, member(i)); });
  time("worth_making, packed",
       [&](std::uint32_t i) { policy.worth_making(piece(kSamples + i, 1.5F), *forecast, now); });
  time("worth_making, made for nothing",
       [&](std::uint32_t i) { policy.worth_making(piece(kSamples + i, 0), *forecast, now); });
  time("admit, made for nothing", [&](std::uint32_t i) {
    gone.clear();
    policy.admit(piece(kSamples + i, 0), *forecast, now, gone);
  });
}

void judge_trace(const JudgedTrace& trace) {
  const CacheJudge judge(trace.datasets, trace.jobs, trace.servers);
  const double best = judge.best(trace.bytes);
  const auto add = [&](const char* who, const Judged& judged) { row(trace.name, who, judged, best); };
  if (!json)
    std::printf("%s: %zu touches, a cache of %lld, best %.1f s\n", trace.name.c_str(), judge.touches(),
                static_cast<long long>(trace.bytes), best);
  add("policy", judge.policy(trace.bytes));
  add("policy, rates known, not orders", judge.policy(trace.bytes, Knowing::kRates));
  add("policy, nothing known", judge.policy(trace.bytes, Knowing::kNothing));
  add("least recently used", judge.least_recently_used(trace.bytes));
  add("first in first out, in two halves", judge.two_generations(trace.bytes));
  add("who is in stays (MinIO)", judge.first_come(trace.bytes));
  add("always the same, knowing which", judge.fixed(trace.bytes));
  const double later = judge.best(trace.bytes, MakeAt::kSecondTouch) / best;
  if (json)
    std::printf("{\"trace\": \"%s\", \"who\": \"best, nothing made at first touch\", \"of_best\": %.4f}\n",
                trace.name.c_str(), later);
  else
    std::printf("  %-34s %60.1f %% of the best\n", "best, nothing made at first touch", 100 * later);
  std::fflush(stdout);
}

}  // namespace

// millrace_bench_cache_policy [SCALE] [--json]
int main(int argc, char** argv) {
  std::uint32_t scale = 4;
  for (const std::string& argument : std::vector<std::string>(argv + 1, argv + argc)) {
    if (argument == "--json")
      json = true;
    else
      scale = static_cast<std::uint32_t>(std::stoul(argument));
  }
  for (const JudgedTrace& trace : millrace::test::judged_traces(scale)) judge_trace(trace);
  time_calls();
}
