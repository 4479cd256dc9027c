#include "daemon/process/parts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/backend/backend_table.h"
#include "daemon/observe/log.h"
#include "daemon/settings/state_dir.h"
#include "proto/base/backend_name.h"
#include "proto/base/printable.h"

namespace millrace {

KeyTable every_key() {
  return KeyTable(backend_settings());
}

void prepare_state_dir(const Settings& settings) {
  const std::string& folder = settings.state_dir;
  if (folder.empty())
    return log_info(
        "nothing is kept from start to start: daemon.state_dir is empty, or there is no folder for it: set it, or "
        "$XDG_STATE_HOME");
  if (folder != automatic_state_dir()) return;
  const Result<void> made = make_state_dir(folder);
  if (!made) log_warning("nothing is kept from start to start: " + made.error().message);
}

std::string kinds_kept(const Settings& settings) {
  if (!settings.packed) return settings.tensors ? "seek indexes and tensors" : "seek indexes";
  return settings.tensors ? "seek indexes, packed forms and tensors" : "seek indexes and packed forms";
}

std::unique_ptr<ImageCache> make_cache(const Settings& settings, Counters& counters, const UseTable& uses) {
  if (settings.cache_memory.count == 0) return nullptr;
  const Bytes disk = settings.cache_disk == kAutomatic ? automatic_cache_disk(settings.state_dir) : settings.cache_disk;
  auto cache = std::make_unique<ImageCache>(ImageCache::Options{.memory = settings.cache_memory,
                                                                .disk = disk,
                                                                .state_dir = settings.state_dir,
                                                                .packed = settings.packed,
                                                                .tensors = settings.tensors,
                                                                .uses = &uses},
                                            counters);
  log_info(kinds_kept(settings) + " are kept " + cache->whereabouts());
  return cache;
}

Result<std::vector<NamedBackend>> make_backends(const Settings& settings, const InForce<Limits>& limits,
                                                ImageCache* cache, Counters& counters) {
  std::vector<NamedBackend> backends;
  for (const BackendRow& row : backend_table()) {
    if (!row.wanted(settings)) continue;
    MILLRACE_TRY(auto devices, row.create(settings, {.limits = limits, .cache = cache, .counters = &counters}));
    if (devices.empty()) log_info("backend " + std::string(row.name) + ": no such device here");
    for (std::unique_ptr<Backend>& device : devices) {
      const BackendInfo info = device->info();
      if (!is_backend_name(info.name))
        return Error{Code::kInternal, printable(info.name) + " is not a backend's name, which has " + kBackendNameRule};
      log_info("backend " + info.name + ": " + std::to_string(info.lanes) + " lanes of " + info.device + ", " +
               info.detail);
      backends.push_back({info.name, std::move(device), info.by_pin_only});
    }
  }
  // The processor takes what devices leave, but for those that take what names them alone.
  std::stable_partition(backends.begin(), backends.end(), [](const NamedBackend& named) {
    return !named.by_pin_only && named.backend->info().instruction_sets.empty();
  });
  if (backends.empty())
    return Error{Code::kInvalid,
                 "no backend is left: this host lacks the devices of those that the settings want; set "
                 "backends.cpu = true"};
  return backends;
}

}  // namespace millrace
