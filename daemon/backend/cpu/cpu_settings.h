// What the administrator decides about the CPU's lanes: the keys backends.cpu, lanes.cpu, lanes.cores, lanes.pin,
// cpu.target, cpu.isolation and cpu.decoder. Value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/backend/cpu/lanes/lane_pin.h"
#include "daemon/settings/keys.h"
#include "kernels/base/target.h"

namespace millrace {

// Where decoders that are not ours run.
enum class Isolation : std::uint8_t { kNone, kProcess };

struct CpuSettings {
  bool wanted = true;
  std::uint32_t lanes = 0;  // 0: one for each of `cores`, or for each processor that the process may use and is granted
                            // the time of
  std::vector<int> cores;   // to pin lanes to, in order; empty: as `pin` says
  LanePin pin = LanePin::kNone;
  std::optional<kernels::Target> target;  // nullopt: the best that the processor has
  Isolation isolation = Isolation::kNone;
  std::string decoder;  // the program for it; empty: where it is installed
};

SettingsPart cpu_settings();

}  // namespace millrace
