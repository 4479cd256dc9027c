// Damage to the restart markers of a JPEG file, and to the data before them. The same for the same seed.
// Thread-safe: plain functions.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "tests/support/jpeg/jpeg_stream.h"

namespace millrace {

enum class RestartDamage {
  kGone,        // a marker is missing
  kRenumbered,  // it has another number
  kTwice,       // it comes twice
  kFilled,      // fill bytes stand before it
  kOther,       // another marker stands in its place
  kMore,        // bytes too many before it
  kFewer,       // bytes too few
  kSwapped,     // two intervals, their markers with them
  kSurplus,     // a marker behind the last interval
};
inline constexpr int kRestartDamages = 9;

// The places of the markers, in order.
std::vector<std::size_t> restarts_of(const JpegFile& file);

// Of one marker; the file as it is where it has none.
std::vector<std::byte> damage_restart(const JpegFile& file, RestartDamage kind, std::mt19937& random);

}  // namespace millrace
