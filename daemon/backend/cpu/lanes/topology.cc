#include "daemon/backend/cpu/lanes/topology.h"

#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>

namespace millrace {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Destroy>;

Topology new_topology() {
  hwloc_topology_t made = nullptr;
  return Topology(hwloc_topology_init(&made) == 0 ? made : nullptr);
}

int node_of(hwloc_topology_t topology, unsigned processor) {
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (hwloc_bitmap_isset(node->cpuset, processor) != 0) return static_cast<int>(node->os_index);
  }
  return 0;
}

std::vector<Processor> processors_of(hwloc_topology_t topology) {
  std::vector<Processor> found;
  hwloc_obj_t unit = nullptr;
  while ((unit = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, unit)) != nullptr) {
    const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, unit);
    const unsigned shared = core != nullptr ? core->logical_index : unit->logical_index;
    found.push_back({static_cast<int>(unit->os_index), static_cast<int>(shared), node_of(topology, unit->os_index)});
  }
  std::sort(found.begin(), found.end(), [](const Processor& a, const Processor& b) { return a.number < b.number; });
  return found;
}

// Of one group's cpu.max, "200000 100000" or "max 100000"; 0: none.
double grant_in(const std::string& group) {
  std::ifstream file(group + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

Result<std::vector<Processor>> usable_processors() {
  const Topology topology = new_topology();
  if (!topology || hwloc_topology_load(topology.get()) != 0)
    return Error{Code::kInternal, "the processor's cores cannot be told apart (hwloc)"};
  std::vector<Processor> found = processors_of(topology.get());
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return found;
  std::erase_if(found, [&](const Processor& processor) {
    return processor.number < CPU_SETSIZE && !CPU_ISSET(static_cast<unsigned>(processor.number), &usable);
  });
  if (found.empty()) return Error{Code::kInternal, "no processor is usable, says hwloc"};
  return found;
}

Result<std::vector<Processor>> synthetic_processors(const std::string& description) {
  const Topology topology = new_topology();
  if (!topology || hwloc_topology_set_synthetic(topology.get(), description.c_str()) != 0 ||
      hwloc_topology_load(topology.get()) != 0)
    return Error{Code::kInvalid, "not a topology: " + description};
  return processors_of(topology.get());
}

std::uint32_t granted_processors(const std::string& mount, const std::string& own_groups) {
  double least = grant_in(mount);
  std::ifstream groups(own_groups);
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    for (std::string group = line.substr(3); group.size() > 1;
         group.resize(std::max<std::size_t>(1, group.rfind('/')))) {
      const double grant = grant_in(mount + group);
      if (grant > 0) least = least > 0 ? std::min(least, grant) : grant;
    }
  }
  return static_cast<std::uint32_t>(std::ceil(std::min(least, 1e6)));
}

}  // namespace millrace
