// How much of the lanes each user has a right to beside others, as the administrator says it: parts, 1 where nothing is
// said. Value.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "daemon/model/caller.h"

namespace millrace {

struct FairWeights {
  static constexpr std::uint32_t kMost = 1'000;

  std::map<uid_t, std::uint32_t> users;
  std::map<gid_t, std::uint32_t> groups;

  // His own, else the highest of his groups', as the kernel knows them of this caller, else 1.
  std::uint32_t of(const Caller& caller) const {
    if (const auto own = users.find(caller.uid); own != users.end()) return own->second;
    std::uint32_t highest = 0;
    const auto look = [&](gid_t group) {
      if (const auto found = groups.find(group); found != groups.end()) highest = std::max(highest, found->second);
    };
    look(caller.gid);
    for (const gid_t group : caller.groups) look(group);
    return std::max(highest, 1U);
  }

  friend bool operator==(const FairWeights&, const FairWeights&) = default;
};

}  // namespace millrace
