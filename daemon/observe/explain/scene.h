// What happened between two looks, for code that draws conclusions from it. Values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "daemon/observe/explain/causes.h"
#include "daemon/observe/explain/waited.h"

namespace millrace {

// The dearer of two that are as dear comes first.
enum class CauseCode : std::uint8_t {
  kDraining,
  kRootHangs,
  kHostShort,
  kSlotsHeld,
  kSlowSource,
  kFilling,
  kListing,
  kShuffling,
  kEncodedInFlight,
  kMemoryDecoding,
  kDeviceLost,
  kDeviceLeaves,
  kDeviceBusy,
  kCpuMax,
  kOtherPrograms,
  kOthersHaveLanes,
  kOthersRead,
  kSlowFiles,
  kCacheTooSmall,
  kFirstEpoch,
  kSlowDisk,
  kOwnWork,
  kSettling,
  kLoopComputes,
  kIdle,
};
std::string_view cause_name(CauseCode code);  // "slow_disk": for programs, for good

struct Scene {
  const Circumstances& around;
  Waited waited;
  double batches = 0, images = 0, bytes = 0;
  double held = 0;                              // slots that the program held while it waited
  double lanes = 0, decode = 0, all_lanes = 0;  // lane seconds: the session's, in decoding, and everybody's
  double made = 0, left = 0;                    // images
  double all_images = 0, first_touches = 0;     // everybody's
  double hits = 0, misses = 0, evictions = 0;   // of what is kept
  double shortages = 0;
  double others_use = 0;  // of all processors, by other programs, 0 to 1
  double lacked = 0;      // of the time in which lanes could run, the part without a processor
  double cut = 0;         // of the periods of cpu.max, those that ended too soon

  double seconds() const { return waited.seconds; }
  double wait(SessionState state) const { return waited.wait(state); }
  double rate() const { return seconds() > 0 ? images / seconds() : 0; }
  double bytes_an_image() const { return images > 0 ? bytes / images : 0; }
  double lane_time_an_image() const { return made > 0 ? lanes / made : 0; }
  // That the lanes make a second, if they all are the session's; 0: not known.
  double lanes_can() const { return lane_time_an_image() > 0 ? around.lanes / lane_time_an_image() : 0; }
  // Images a second that the program would reach if it had not waited for so many seconds.
  double rate_without(double wait) const { return images / std::max(seconds() - wait, 0.02 * seconds()); }
  // That it would reach if lanes made so many times what they make now, and it waited for nothing else from them.
  double rate_with_lanes_times(double factor) const {
    const double lane_waits = wait(SessionState::kMaking) + wait(SessionState::kLaneTurn);
    return std::min(rate() * factor, rate_without(lane_waits));
  }
  // As rate_without(), where the lanes still are as many.
  double rate_with_lanes(double wait) const {
    return lanes_can() > 0 ? std::max(rate(), std::min(rate_without(wait), lanes_can())) : rate_without(wait);
  }
};

// In words and figures. `wait`: seconds of the program's that it is to blame for.
Cause cause_of(CauseCode code, double wait, const Scene& scene);

}  // namespace millrace
