// What the kernel says of this host's processors, of the daemon's lanes, and of cpu.max. A look takes some 60 us with
// four lanes: for once a second. What cannot be read is left at 0. Thread-bound(control).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "daemon/observe/explain/looks.h"

namespace millrace {

class HostReader {
 public:
  HostReader();

  HostLook look();

 private:
  static constexpr std::size_t kMostLanes = 16;                // that are looked at
  static constexpr std::chrono::seconds kBetweenSearches{30};  // for threads of lanes

  void find_lanes();

  std::vector<std::string> lanes_;   // their files of times
  std::vector<std::string> groups_;  // cpu.stat of the daemon's control group, and of those above it
  std::chrono::steady_clock::time_point searched_{};
};

}  // namespace millrace
