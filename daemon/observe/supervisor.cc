#include "daemon/observe/supervisor.h"

#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <system_error>

#include "daemon/observe/log.h"

namespace millrace {
namespace {

constexpr std::chrono::microseconds kStatusEvery = std::chrono::seconds(5);

}  // namespace

Supervisor Supervisor::of_this_process() {
  if (std::getenv("NOTIFY_SOCKET") == nullptr) return Supervisor(std::nullopt);
  std::uint64_t watchdog = 0;
  if (sd_watchdog_enabled(0, &watchdog) <= 0) return Supervisor(kStatusEvery);
  return Supervisor(std::min(kStatusEvery, std::chrono::microseconds(std::max<std::uint64_t>(watchdog / 2, 1))));
}

void Supervisor::ready(const std::string& status) const {
  tell("READY=1", status);
}

void Supervisor::alive(const std::string& status) const {
  tell("WATCHDOG=1", status);
}

void Supervisor::stopping(const std::string& status) const {
  tell("STOPPING=1", status);
}

void Supervisor::tell(const char* state, const std::string& status) const {
  if (!interval_) return;
  const std::string text = status.empty() ? state : state + ("\nSTATUS=" + status);
  const int told = sd_notify(0, text.c_str());
  if (told < 0)
    log_warning("telling the service manager " + std::string(state) + ": " + std::generic_category().message(-told));
}

}  // namespace millrace
