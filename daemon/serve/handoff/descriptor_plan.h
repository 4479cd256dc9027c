// How many descriptors the daemon can come to need, which is known at the start, and whether it may have them. Those of
// connections are bounded by their limits; those for files that are being read are kept free of connections. Functions,
// thread-safe.
#pragma once

#include <cstdint>

#include "daemon/model/limits.h"
#include "proto/base/result.h"

namespace millrace {

enum class WithOpener : bool { kNo, kYes };  // files are opened by one: fetch/open/opener_link.h

struct DescriptorNeeds {
  SessionLimits sessions;
  std::uint32_t fetch_threads = 4;
  std::size_t roots = 0;
  std::uint64_t decoders = 0;  // processes that decode
  WithOpener opener = WithOpener::kNo;
  bool device_memory = false;  // sessions may have tensors in a device's
};

// All together, for the most clients that the limits allow.
std::uint64_t descriptors_needed(const DescriptorNeeds& needs);

// The highest descriptor that a connection may have when the process may have `limit`. kExhausted: not enough, with the
// figures and what to do.
Result<int> highest_for_connections(const DescriptorNeeds& needs, std::uint64_t limit);

// The same for this process, whose soft limit is raised as far as is needed, within the hard one.
Result<int> prepare_descriptors(const DescriptorNeeds& needs);

}  // namespace millrace
