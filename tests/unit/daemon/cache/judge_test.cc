#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "tests/support/policy/cache_judge.h"
#include "tests/support/policy/judged_traces.h"
#include "tests/support/rounds.h"

namespace millrace::test {
namespace {

// Tries everything: at each access, keep or not, make or not.
double by_trial(const std::vector<FlowThing>& things, const std::vector<std::uint32_t>& accesses, std::int64_t bytes,
                MakeAt make) {
  std::map<std::uint32_t, double> best{{0U, 0.0}};  // by the set of what is kept
  std::uint32_t accessed = 0;
  for (const std::uint32_t access : accesses) {
    const std::uint32_t bit = 1U << access;
    std::map<std::uint32_t, double> after;
    const auto reach = [&](std::uint32_t kept, double saved) {
      std::int64_t used = 0;
      for (std::uint32_t i = 0; i < things.size(); ++i) used += (kept >> i & 1U) * things[i].bytes;
      if (used > bytes) return;
      const auto [at, added] = after.emplace(kept, saved);
      if (!added) at->second = std::max(at->second, saved);
    };
    for (const auto& [kept, saved] : best) {
      const bool hit = (kept & bit) != 0;
      const bool may_make = make == MakeAt::kAnyTouch || (accessed & bit) != 0;
      for (std::uint32_t subset = kept;; subset = (subset - 1) & kept) {  // who stays
        reach(subset, saved + (hit ? things[access].saves : 0));
        if (!hit && may_make) reach(subset | bit, saved - things[access].costs);
        if (subset == 0) break;
      }
    }
    accessed |= bit;
    best = std::move(after);
  }
  double most = 0;
  for (const auto& [kept, saved] : best) most = std::max(most, saved);
  return most;
}

TEST_CASE("the best by flow is the best by trying everything", "[cache]") {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const bool even = round % 2 == 0;
    std::vector<FlowThing> things;
    for (int i = 0; i < 5; ++i) {
      const std::int64_t bytes = even ? 1 : 1 + random() % 3;
      things.push_back({bytes, 1.0 + random() % 5, static_cast<double>(random() % 4)});
    }
    std::vector<std::uint32_t> accesses;
    for (int i = 0; i < 24; ++i) accesses.push_back(random() % 5);
    const std::int64_t bytes = even ? 1 + random() % 3 : 2 + random() % 4;
    for (const MakeAt make : {MakeAt::kAnyTouch, MakeAt::kSecondTouch}) {
      const double flow = best_saving(things, accesses, bytes, make), trial = by_trial(things, accesses, bytes, make);
      INFO("round " << round);
      REQUIRE(flow >= trial - 1e-9);
      if (even) REQUIRE(flow == Approx(trial).margin(1e-9));
    }
  }
}

struct Least {
  double of_best;    // of a cache that knows the future
  double of_second;  // of a cache that knows the future, but makes nothing at a first access
};

// What is below 0.95 has its reason. Whether there will be a second epoch nobody knows in the first one, so what takes long to
// make is made from the second access on, and a short trace loses its first hits by that (c, packed). When somebody asks
// for a file again nobody knows at all (d): a cache that knew how often each is asked for and kept the most wanted ones
// would get 0.92.
TEST_CASE("the policy saves nearly as much as a cache that knows the future", "[cache]") {
  const std::map<std::string, Least> least{
      {"c. three jobs, two datasets, then a third, packed", {0.90, 0.95}},
      {"d. Zipf beside a job, made for nothing", {0.88, 0.92}},
      {"d. Zipf beside a job, tensors", {0.88, 0.92}},
      {"d. Zipf beside a job, packed", {0.88, 0.93}},
  };
  int judged = 0;
  for (const JudgedTrace& trace : judged_traces(2)) {
    if (!is_taken(judged++)) continue;
    const CacheJudge judge(trace.datasets, trace.jobs, trace.servers);
    const double saved = judge.policy(trace.bytes).seconds;
    const auto found = least.find(trace.name);
    INFO(trace.name << ": seeds as in judged_traces.h");
    const double best = judge.best(trace.bytes);
    REQUIRE(saved >= (found == least.end() ? 0.95 : found->second.of_best) * best);
    if (found != least.end()) REQUIRE(saved >= found->second.of_second * judge.best(trace.bytes, MakeAt::kSecondTouch));
    REQUIRE(saved <= best + 1e-6);
    REQUIRE(saved > judge.least_recently_used(trace.bytes).seconds);
    REQUIRE(saved > judge.two_generations(trace.bytes).seconds);
  }
}

TEST_CASE("one dataset larger than the cache does not thrash", "[cache]") {
  const CacheJudge judge({{.samples = 400, .saves = 0.5, .costs = 1.5}}, {{.speed = 400, .epochs = 20, .seed = 11}});

  const Judged judged = judge.policy(100);

  REQUIRE(judged.made == 100);
  REQUIRE(judged.hits == 18 * 100);  // from the third epoch on, a quarter of it
}

TEST_CASE("knowing the orders is worth much where several jobs share a cache", "[cache]") {
  const JudgedTrace trace = judged_traces(2)[2];
  const CacheJudge judge(trace.datasets, trace.jobs, trace.servers);

  const double orders = judge.policy(trace.bytes).seconds;
  REQUIRE(orders > 1.4 * judge.policy(trace.bytes, CacheJudge::Knowing::kRates).seconds);
  REQUIRE(orders > 1.4 * judge.first_come(trace.bytes).seconds);
}

TEST_CASE("a job that ends lets the next one have its room", "[cache]") {
  const CacheJudge judge({{.samples = 200, .saves = 0.5, .costs = 1.5}, {.samples = 200, .saves = 0.5, .costs = 1.5}},
                         {{.dataset = 0, .speed = 200, .epochs = 10, .seed = 1},
                          {.dataset = 1, .begin = 10.5, .speed = 200, .epochs = 10, .seed = 2}});

  const Judged judged = judge.policy(200);

  REQUIRE(judged.made == 400);
  REQUIRE(judged.hits == 2 * 8 * 200);
}

}  // namespace
}  // namespace millrace::test
