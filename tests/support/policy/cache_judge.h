// Plays touches of samples through a cache of one tier, without any bytes, by the policy and by others, and says what it
// saved. Everything is a function of seeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/cache/policy/policy.h"
#include "tests/support/policy/best_flow.h"

namespace millrace::test {

struct JudgedDataset {
  std::uint32_t samples = 0;
  std::int64_t least_bytes = 1, most_bytes = 1;  // each sample's: between the two, uniformly
  double saves = 1;                              // of a sample of mean size; in proportion to its bytes
  double costs = 0;                              // likewise
};

// Epochs over a dataset, each shuffled anew.
struct JudgedJob {
  std::uint32_t dataset = 0;
  double begin = 0, speed = 100;  // seconds, samples a second
  std::uint32_t epochs = 1;
  std::uint64_t seed = 0;
  Shuffle shuffle = Shuffle::kYes;
};

// Files of no dataset, the n-th most wanted one of `files` with a probability in proportion to n^-exponent.
struct JudgedServer {
  std::uint32_t files = 0;
  double exponent = 1, speed = 100, seconds = 0;
  std::uint64_t seed = 0;
  double saves = 1, costs = 0;
};

struct Judged {
  std::uint64_t touches = 0, hits = 0, made = 0;
  double seconds = 0;  // saved by hits, less what making took
  double hit_ratio() const { return touches == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(touches); }
};

class CacheJudge {
 public:
  CacheJudge(const std::vector<JudgedDataset>& datasets, const std::vector<JudgedJob>& jobs,
             const std::vector<JudgedServer>& servers = {});

  std::size_t touches() const { return touches_.size(); }

  enum class Knowing : std::uint8_t { kOrders, kRates, kNothing };  // what the policy is told of the jobs
  Judged policy(std::int64_t bytes, Knowing knowing = Knowing::kOrders) const;
  Judged least_recently_used(std::int64_t bytes) const;
  Judged two_generations(std::int64_t bytes) const;  // first in, first out, by halves; what is found is young again
  Judged first_come(std::int64_t bytes) const;       // who is in stays (MinIO)
  // The best of all that keep the same things all the time, knowing how often each is touched.
  Judged fixed(std::int64_t bytes) const;
  // The best of all: best_flow.h.
  double best(std::int64_t bytes, MakeAt make = MakeAt::kAnyTouch) const;

 private:
  struct Touch {
    double time;
    std::uint32_t job;  // jobs_.size(): a server's
    std::uint32_t epoch;
    std::uint32_t thing;
    std::uint64_t position;  // in the epoch
  };
  template <typename Kept>
  Judged play(Kept&& kept) const;

  std::vector<JudgedDataset> datasets_;
  std::vector<JudgedJob> jobs_;
  std::vector<FlowThing> things_;
  std::vector<DatasetMember> members_;  // of things
  std::vector<Touch> touches_;          // in time order
};

}  // namespace millrace::test
