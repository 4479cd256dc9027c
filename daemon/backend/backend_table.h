// The backends that this build has: the one visible list. A host without a device simply lacks that row at run time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "daemon/backend/backend.h"
#include "daemon/cache/seek_cache.h"
#include "daemon/model/lane_pin.h"
#include "daemon/model/limits.h"
#include "kernels/base/target.h"
#include "proto/base/result.h"

namespace millrace {

struct BackendOptions {
  std::uint32_t lanes = 0;  // CPU lanes; 0: one for each processor that the process may use and is granted the time of
  std::vector<int> cores;   // to pin lanes to, in order; empty: as `pin` says
  LanePin pin = LanePin::kNone;
  std::optional<kernels::Target> target;  // of the CPU; nullopt: the best that it has
  SampleLimits limits;
  SeekCache* cache = nullptr;  // of seek indexes; outlives the backend. nullptr: none
  std::string fake;  // settings of the fake backend, "delay_us=100,fail_every=7,lose_after=20"; only tests set it
};

struct BackendRow {
  std::string_view name;
  bool (*available)();  // whether this host has what it needs
  Result<std::unique_ptr<Backend>> (*create)(const BackendOptions& options);
};

std::span<const BackendRow> backend_table();

}  // namespace millrace
