// What keeping something of a file saves and costs, for the policy to compare: seconds of a lane. Reckoned from sizes, not
// from clocks: what is compared has to be the same when the host is busy, or entries of equal worth would push each other
// out. The unit, a byte of a file decoded for the first time, is a guess that cancels out. Plain functions.
#pragma once

#include <cstdint>

#include "daemon/model/bytes/cached_bytes.h"

namespace millrace {

struct Savings {
  float saves = 0;  // seconds that a hit saves, beyond what another kept form of the same file saves already
  float costs = 0;  // seconds that making it takes, beyond what is done anyway
};

// What stands in for a file already.
enum class Beside : std::uint8_t { kIndex, kPacked };

// Of what a first access takes an index saves a fifth, a packed form half of what the index leaves, and a tensor all but a
// copy. Packing takes as long as making one sample or two.
inline Savings savings_of(CachedKind kind, std::uint64_t file_bytes, Beside beside = Beside::kIndex) {
  constexpr float kSecondsAByte = 1e-8F;
  constexpr float kByIndex = 0.2F, kByPacked = 0.4F, kByTensor = 0.8F, kPacking = 1.5F;
  const float first_access = static_cast<float>(file_bytes) * kSecondsAByte;
  switch (kind) {
    case CachedKind::kIndex:
      return {.saves = kByIndex * first_access};
    case CachedKind::kPacked:
      return {.saves = kByPacked * first_access, .costs = kPacking * first_access};
    case CachedKind::kTensor:
      return {.saves = (beside == Beside::kPacked ? kByTensor - kByPacked : kByTensor) * first_access};
  }
  return {};
}

}  // namespace millrace
