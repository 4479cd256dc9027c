#include "daemon/backend/cpu/lanes/pinning.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace millrace {
namespace {

// Where a processor stands in the order; smaller is earlier.
using Rank = std::tuple<int, int, int>;  // among its core's siblings, of its core in the node, of the node

std::vector<Rank> ranks(std::span<const Processor> usable) {
  std::map<int, int> siblings;  // of a core, so far
  std::map<int, int> cores;     // of a node, so far
  std::map<int, int> core_rank;
  std::vector<Rank> found;
  for (const Processor& processor : usable) {
    if (!core_rank.contains(processor.core)) core_rank[processor.core] = cores[processor.node]++;
    found.emplace_back(siblings[processor.core]++, core_rank[processor.core], processor.node);
  }
  return found;
}

template <class Same>
std::vector<int> numbers_where(std::span<const Processor> usable, Same same) {
  std::vector<int> numbers;
  for (const Processor& processor : usable) {
    if (same(processor)) numbers.push_back(processor.number);
  }
  return numbers;
}

bool several_nodes(std::span<const Processor> usable) {
  return std::any_of(usable.begin(), usable.end(),
                     [&](const Processor& processor) { return processor.node != usable.front().node; });
}

std::string joined(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

std::string name_of(const LanePlace& place) {
  const std::string on = place.core >= 0 ? "core " + std::to_string(place.core) + " of " : "";
  return on + (place.node >= 0 ? "node " + std::to_string(place.node) + ", " : "") + "processors " +
         joined(place.processors);
}

}  // namespace

std::vector<Processor> filling_order(std::span<const Processor> usable) {
  const std::vector<Rank> rank = ranks(usable);
  std::vector<std::size_t> order(usable.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rank[a] < rank[b]; });
  std::vector<Processor> found;
  for (const std::size_t i : order) found.push_back(usable[i]);
  return found;
}

std::vector<LanePlace> lane_places(std::span<const Processor> usable, std::uint32_t lanes, LanePin pin) {
  if (pin == LanePin::kAuto) pin = several_nodes(usable) ? LanePin::kNode : LanePin::kNone;
  std::vector<LanePlace> places(lanes);
  if (pin == LanePin::kNone) return places;
  const std::vector<Processor> order = filling_order(usable);
  for (std::uint32_t i = 0; i < lanes; ++i) {
    const Processor& first = order[i % order.size()];
    places[i].node = first.node;
    if (pin == LanePin::kCore) places[i].core = first.core;
    places[i].processors = numbers_where(usable, [&](const Processor& other) {
      return pin == LanePin::kCore ? other.core == first.core : other.node == first.node;
    });
  }
  return places;
}

std::string describe(std::span<const LanePlace> places) {
  std::map<std::string, std::vector<int>> lanes;  // of a place
  std::vector<std::string> order;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].processors.empty()) continue;
    auto& there = lanes[name_of(places[i])];
    if (there.empty()) order.push_back(name_of(places[i]));
    there.push_back(static_cast<int>(i));
  }
  if (order.empty()) return "not pinned";
  std::string text;
  for (const std::string& place : order) {
    const std::vector<int>& there = lanes[place];
    text +=
        (text.empty() ? "" : "; ") + std::string(there.size() == 1 ? "lane " : "lanes ") + joined(there) + ": " + place;
  }
  return text;
}

}  // namespace millrace
