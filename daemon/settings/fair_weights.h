// What fair.weights says: users and groups by name or number, and how much of the lanes each has a right to beside others.
// Thread-safe but for the system's user database, which it asks.
#pragma once

#include <span>
#include <string>

#include "daemon/model/fair_weights.h"
#include "proto/base/result.h"

namespace millrace {

// "alice=3", "1002=2" (a user's number), "@vision=2" (a group), "@100=2" (a group's number), once each. kInvalid: what is
// wrong with which entry: its form, a name that this host does not know, a weight out of 1 to FairWeights::kMost.
Result<FairWeights> parse_fair_weights(std::span<const std::string> entries);

}  // namespace millrace
