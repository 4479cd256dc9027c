// The traces by which the cache's policy is judged. In seconds of a sample's whole way: a packed form takes 1.5 to make and
// saves a half, a seek index costs nothing and saves a fifth, a tensor costs a copy and saves nearly all.
#pragma once

#include <string>
#include <vector>

#include "tests/support/policy/cache_judge.h"

namespace millrace::test {

struct JudgedTrace {
  std::string name;
  std::vector<JudgedDataset> datasets;
  std::vector<JudgedJob> jobs;
  std::vector<JudgedServer> servers;
  std::int64_t bytes;
};

struct JudgedKind {
  const char* name;
  double saves, costs;
};
inline constexpr JudgedKind kJudgedKinds[] = {
    {"made for nothing", 0.2, 0}, {"tensors", 0.95, 0.05}, {"packed", 0.5, 1.5}};

// `scale`: hundreds of samples of a dataset.
inline std::vector<JudgedTrace> judged_traces(std::uint32_t scale) {
  const std::uint32_t n = 100 * scale;
  const double speed = n;  // an epoch of one job a second
  std::vector<JudgedTrace> traces;
  for (const JudgedKind& kind : kJudgedKinds) {
    const auto named = [&](const char* name) { return std::string(name) + ", " + kind.name; };
    const JudgedDataset even{.samples = n, .saves = kind.saves, .costs = kind.costs};
    for (const std::uint32_t times : {2U, 5U}) {
      traces.push_back({named(times == 2 ? "a2. one job, twice the cache" : "a5. one job, five times the cache"),
                        {even},
                        {{.speed = speed, .epochs = 30, .seed = 1}},
                        {},
                        n / times});
    }
    traces.push_back({named("b. four jobs on one dataset"),
                      {even},
                      {{.speed = speed, .epochs = 12, .seed = 1},
                       {.begin = 0.1, .speed = speed * 1.1, .epochs = 12, .seed = 2},
                       {.begin = 0.3, .speed = speed * 0.7, .epochs = 8, .seed = 3},
                       {.begin = 0.2, .speed = speed * 0.9, .epochs = 10, .seed = 4}},
                      {},
                      n * 2 / 5});
    // Large pictures at a third of the speed; the fast job ends halfway, and another begins on a third dataset.
    traces.push_back(
        {named("c. three jobs, two datasets, then a third"),
         {{.samples = n, .least_bytes = 1, .most_bytes = 3, .saves = kind.saves, .costs = kind.costs},
          {.samples = n / 4, .least_bytes = 6, .most_bytes = 10, .saves = kind.saves * 4, .costs = kind.costs * 4},
          {.samples = n, .least_bytes = 1, .most_bytes = 3, .saves = kind.saves, .costs = kind.costs}},
         {{.dataset = 0, .speed = speed, .epochs = 12, .seed = 1},
          {.dataset = 1, .speed = speed / 12, .epochs = 8, .seed = 2},
          {.dataset = 1, .speed = speed / 6, .epochs = 14, .seed = 3},
          {.dataset = 2, .begin = 12.5, .speed = speed, .epochs = 12, .seed = 4}},
         {},
         n * 3 / 2});
    traces.push_back({named("d. Zipf beside a job"),
                      {even},
                      {{.speed = speed, .epochs = 15, .seed = 1}},
                      {{.files = n,
                        .exponent = 1.0,
                        .speed = speed,
                        .seconds = 15,
                        .seed = 7,
                        .saves = kind.saves,
                        .costs = kind.costs}},
                      n / 2});
  }
  return traces;
}

}  // namespace millrace::test
