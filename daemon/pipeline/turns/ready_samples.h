// Samples of one batch that wait for a backend, the costliest first: lanes that take long ones first and short ones
// last end together (LPT: Graham, Bounds on multiprocessing timing anomalies, 1969). Thread-bound(control).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/place/expected_cost.h"

namespace millrace {

inline std::uint64_t expected_cost(const SampleTask& task) {
  return expected_cost(task.image, task.geometry);
}

// Of samples that a lane makes one after the other.
inline std::uint64_t expected_cost(const std::vector<SampleTask>& tasks) {
  std::uint64_t sum = 0;
  for (const SampleTask& task : tasks) sum += expected_cost(task);
  return sum;
}

class ReadySamples {
 public:
  bool empty() const { return heap_.empty(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(heap_.size()); }
  std::uint64_t cost() const { return cost_; }                                        // of all
  std::uint64_t costliest() const { return heap_.empty() ? 0 : heap_.front().cost; }  // that take() begins with

  void add(SampleTask task) {
    const std::uint64_t cost = expected_cost(task);
    heap_.push_back(Waiting{cost, std::move(task)});
    std::push_heap(heap_.begin(), heap_.end(), before);
    cost_ += cost;
  }

  // The costliest, for one lane: `most` of them, or fewer where they would cost it more than twice as many average ones, or
  // more than `most_cost`. So those that cost many times as much as others do not come together on one lane. At least one,
  // if there is one.
  std::vector<SampleTask> take(std::uint32_t most, std::uint64_t most_cost = ~std::uint64_t{0}) {
    std::vector<SampleTask> taken;
    if (heap_.empty() || most == 0) return taken;
    taken.reserve(std::min(most, size()));
    const std::uint64_t bound = std::min((cost_ / heap_.size() + 1) * most * 2, most_cost);
    std::uint64_t cost = 0;
    while (!heap_.empty() && taken.size() < most && (taken.empty() || cost + heap_.front().cost <= bound)) {
      std::pop_heap(heap_.begin(), heap_.end(), before);
      cost += heap_.back().cost;
      taken.push_back(std::move(heap_.back().task));
      heap_.pop_back();
    }
    cost_ -= cost;
    return taken;
  }

 private:
  struct Waiting {
    std::uint64_t cost;
    SampleTask task;
  };
  static bool before(const Waiting& a, const Waiting& b) { return a.cost < b.cost; }

  std::vector<Waiting> heap_;
  std::uint64_t cost_ = 0;  // of all in it
};

// How many samples of a batch of `count` are one job of a backend of such a queue depth while `waiting` of them have not been given to any:
// fewer and fewer, so that hand-overs are rare at first and no lane has much left when another has nothing; but not so
// few that lanes run dry before the next job comes where others keep this host's cores busy.
constexpr std::uint32_t samples_a_job(std::uint32_t count, std::uint32_t waiting, const QueueDepth& queue_depth) {
  constexpr std::uint32_t kShares = 3;  // of what is left, a lane; 2 lets the costliest come together on many lanes
  const std::uint32_t least = std::clamp(count / (queue_depth.at_once * 8), 1U, queue_depth.few);
  return std::clamp(waiting / (queue_depth.at_once * kShares), least, queue_depth.most);
}

}  // namespace millrace
