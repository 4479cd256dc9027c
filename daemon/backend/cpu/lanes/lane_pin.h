// What CPU lanes are tied to, unless cores are named. A value.
#pragma once

#include <cstdint>

namespace millrace {

enum class LanePin : std::uint8_t {
  kNone,  // nothing: the kernel moves them
  kAuto,  // kNode where there are several NUMA nodes, else kNone
  kNode,  // a NUMA node each, in turns
  kCore,  // a core each, with its siblings
};

}  // namespace millrace
