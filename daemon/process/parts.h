// The parts that the settings may leave out, or that there may be several of. Functions for main()'s thread.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/cache/image_cache.h"
#include "daemon/cache/policy/use_table.h"
#include "daemon/model/in_force.h"
#include "daemon/observe/counters.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/settings/key_table.h"
#include "daemon/settings/settings.h"
#include "proto/base/result.h"

namespace millrace {

// The daemon's own settings, and those of the backends.
KeyTable every_key();

// The folder for what is remembered; where nothing can be kept, the log says so and all works but from memory.
void prepare_state_dir(const Settings& settings);

// For what is kept on disk, before the first client is listened to.
inline constexpr std::chrono::milliseconds kDiskPatience{500};
// nullptr: the settings want nothing kept. `uses` outlives it.
std::unique_ptr<ImageCache> make_cache(const Settings& settings, Counters& counters, const UseTable& uses);

// The devices of backend_table() that the settings want and this host has. `cache` and `counters` outlive them; nullptr: no cache.
// kInvalid: none is left, or what making one came to.
Result<std::vector<NamedBackend>> make_backends(const Settings& settings, const InForce<Limits>& limits,
                                                ImageCache* cache, Counters& counters);

}  // namespace millrace
