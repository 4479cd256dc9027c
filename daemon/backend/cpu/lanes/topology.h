// The processors that lanes may run on: which share a core, which are near the same memory. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "proto/base/result.h"

namespace millrace {

// A processor as the kernel counts them: a hardware thread.
struct Processor {
  int number = 0;
  int core = 0;  // shared by SMT siblings
  int node = 0;  // NUMA

  friend bool operator==(const Processor&, const Processor&) = default;
};

// Those that this process may use (affinity, cpuset), by number. kInternal: hwloc cannot tell.
Result<std::vector<Processor>> usable_processors();

// The same of a machine made up: "numa:2 core:4 pu:2", see hwloc's synthetic topologies. kInvalid.
Result<std::vector<Processor>> synthetic_processors(const std::string& description);

// How many processors' worth of time the control group of `own_groups` (/proc/self/cgroup) grants, over every level up
// to `mount` (/sys/fs/cgroup), rounded up; 0: no limit, or version 1.
std::uint32_t granted_processors(const std::string& mount, const std::string& own_groups);

}  // namespace millrace
