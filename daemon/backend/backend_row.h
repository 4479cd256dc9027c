// What the table says of a type of device: its settings, and how its backends are made. Values.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/cache/image_cache.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "daemon/observe/counters.h"
#include "daemon/settings/keys.h"
#include "daemon/settings/settings.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

// What the daemon has for every backend.
struct BackendServices {
  InForce<Limits> limits;
  ImageCache* cache = nullptr;   // of seek indexes; outlives the backend. nullptr: none
  Counters* counters = nullptr;  // outlive the backend. nullptr: nothing is counted
};

// Memory of the host that devices take for themselves, however much is to be made.
struct HostMemory {
  Bytes bytes;
  std::string_view what;  // which settings say so, for people
};

struct BackendRow {
  std::string_view name;  // "cuda": its devices are called so, or so with a number, "cuda:0"

  // The keys that it brings, in a struct of its own.
  SettingsPart (*settings)();

  // Whether the settings switch it on.
  bool (*wanted)(const Settings& settings);

  // One for each device that this host has and the settings want; none where there is none. An error: what the settings
  // ask for cannot be had. Called once, when it is wanted.
  Result<std::vector<std::unique_ptr<Backend>>> (*create)(const Settings& settings, const BackendServices& services);

  // What counts towards the service's memory beside budgets and lanes; no bytes where it is not wanted. nullptr: none.
  HostMemory (*memory)(const Settings& settings) = nullptr;
};

}  // namespace millrace
