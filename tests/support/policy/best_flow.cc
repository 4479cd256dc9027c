#include "tests/support/policy/best_flow.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace millrace::test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Arcs in pairs: an arc and, at the next number, its way back.
class Flow {
 public:
  explicit Flow(std::size_t nodes) : first_(nodes, -1), potential_(nodes, 0), distance_(nodes), by_(nodes) {}

  void add(std::size_t from, std::size_t to, std::int64_t room, double cost) {
    arcs_.push_back({to, first_[from], room, cost});
    first_[from] = static_cast<int>(arcs_.size()) - 1;
    arcs_.push_back({from, first_[to], 0, -cost});
    first_[to] = static_cast<int>(arcs_.size()) - 1;
  }

  // REQUIRES: arcs lead from lower to higher places in `order`.
  double cheapest(const std::vector<std::size_t>& order, std::size_t from, std::size_t to, std::int64_t amount) {
    std::fill(potential_.begin(), potential_.end(), kNever);
    potential_[from] = 0;
    for (const std::size_t node : order) relax_all(node);
    double cost = 0;
    while (amount > 0 && search(from, to)) {
      std::int64_t through = amount;
      for (std::size_t node = to; node != from; node = arcs_[by_[node] ^ 1].to)
        through = std::min(through, arcs_[by_[node]].room);
      for (std::size_t node = to; node != from; node = arcs_[by_[node] ^ 1].to) {
        arcs_[by_[node]].room -= through;
        arcs_[by_[node] ^ 1].room += through;
      }
      const double each = potential_[to] - potential_[from];
      if (each > -1e-12) break;  // the rest stays free
      cost += each * static_cast<double>(through);
      amount -= through;
    }
    return cost;
  }

 private:
  struct Arc {
    std::size_t to;
    int next;
    std::int64_t room;
    double cost;
  };

  void relax_all(std::size_t node) {
    for (int arc = first_[node]; arc >= 0; arc = arcs_[arc].next) {
      if (arcs_[arc].room > 0 && potential_[node] + arcs_[arc].cost < potential_[arcs_[arc].to])
        potential_[arcs_[arc].to] = potential_[node] + arcs_[arc].cost;
    }
  }

  bool search(std::size_t from, std::size_t to) {
    using Step = std::pair<double, std::size_t>;
    std::priority_queue<Step, std::vector<Step>, std::greater<>> steps;
    std::fill(distance_.begin(), distance_.end(), kNever);
    distance_[from] = 0;
    steps.push({0, from});
    while (!steps.empty()) {
      const auto [far, node] = steps.top();
      steps.pop();
      if (far > distance_[node]) continue;
      for (int arc = first_[node]; arc >= 0; arc = arcs_[arc].next) {
        const Arc& along = arcs_[arc];
        if (along.room == 0) continue;
        const double next = far + std::max(along.cost + potential_[node] - potential_[along.to], 0.0);
        if (next >= distance_[along.to]) continue;
        distance_[along.to] = next;
        by_[along.to] = arc;
        steps.push({next, along.to});
      }
    }
    if (distance_[to] == kNever) return false;
    for (std::size_t node = 0; node < potential_.size(); ++node) {
      if (distance_[node] < kNever) potential_[node] += distance_[node];
    }
    return true;
  }

  std::vector<Arc> arcs_;
  std::vector<int> first_;
  std::vector<double> potential_, distance_;
  std::vector<int> by_;
};

}  // namespace

double best_saving(const std::vector<FlowThing>& things, const std::vector<std::uint32_t>& touches, std::int64_t bytes,
                   MakeAt make) {
  const std::size_t count = touches.size();
  if (count < 2) return 0;
  const auto line = [](std::size_t touch) { return 2 * touch + 1; };
  const auto held = [](std::size_t touch) { return 2 * touch; };
  // What is held is let go before it may be made, so: held, line, next touch. Made: a node of its own beyond the two.
  Flow flow(3 * count);
  const auto made = [count](std::size_t touch) { return 2 * count + touch; };
  std::vector<std::size_t> next(count, count), last(things.size(), count), order;
  std::vector<bool> touched(things.size(), false);
  for (std::size_t i = count; i-- > 0;) next[i] = std::exchange(last[touches[i]], i);
  for (std::size_t i = 0; i < count; ++i) {
    const FlowThing& thing = things[touches[i]];
    const double each = 1.0 / static_cast<double>(thing.bytes);
    order.insert(order.end(), {held(i), line(i), made(i)});
    if (i + 1 < count) flow.add(line(i), line(i + 1), bytes, 0);
    flow.add(held(i), line(i), thing.bytes, 0);
    if (next[i] == count) continue;
    flow.add(held(i), made(i), thing.bytes, 0);
    const bool first = !touched[touches[i]];
    touched[touches[i]] = true;
    if (!first || make == MakeAt::kAnyTouch) flow.add(line(i), made(i), thing.bytes, thing.costs * each);
    flow.add(made(i), held(next[i]), thing.bytes, -thing.saves * each);
  }
  return -flow.cheapest(order, line(0), line(count - 1), bytes);
}

}  // namespace millrace::test
