// Which processors each lane may run on. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "daemon/backend/cpu/lanes/lane_pin.h"
#include "daemon/backend/cpu/lanes/topology.h"

namespace millrace {

struct LanePlace {
  std::vector<int> processors;  // it may run on; empty: wherever the kernel likes
  int core = -1, node = -1;     // that it was given; -1: none
};

// In the order in which lanes are filled: a processor of each core first, cores of the nodes in turns; SMT siblings
// after all cores.
std::vector<Processor> filling_order(std::span<const Processor> usable);

// `pin` over `usable`, once around and again for more lanes than processors: kCore leaves a lane its core with all
// siblings, kNode its NUMA node, kAuto is kNode where there are several nodes and else kNone. REQUIRES: `usable` is not
// empty.
std::vector<LanePlace> lane_places(std::span<const Processor> usable, std::uint32_t lanes, LanePin pin);

// For people: "not pinned", "lane 0: core 0 (0, 64); lane 1: ...", "lanes 0, 2: node 0; lanes 1, 3: node 1".
std::string describe(std::span<const LanePlace> places);

}  // namespace millrace
