#include "daemon/observe/supervisor.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "daemon/observe/log.h"
#include "proto/base/error.h"
#include "proto/base/unique_fd.h"

namespace millrace {
namespace {

constexpr std::chrono::microseconds kStatusEvery = std::chrono::seconds(5);

std::string with_status(const char* state, const std::string& status) {
  if (status.empty()) return state;
  return std::string(state) + (*state == '\0' ? "" : "\n") + "STATUS=" + status;
}

}  // namespace

Supervisor Supervisor::of_this_process() {
  if (std::getenv("NOTIFY_SOCKET") == nullptr) return Supervisor(std::nullopt, std::nullopt);
  std::uint64_t watchdog = 0;
  if (sd_watchdog_enabled(0, &watchdog) <= 0) return Supervisor(kStatusEvery, std::nullopt);
  const std::chrono::microseconds limit(std::max<std::uint64_t>(watchdog, 2));
  return Supervisor(std::min(kStatusEvery, limit / 2), limit);
}

void Supervisor::ready(const std::string& status) const {
  if (!interval_) return;
  if (const int told = sd_notify(0, with_status("READY=1", status).c_str()); told < 0)
    log_warning(errno_error("telling the service manager that the daemon is ready", -told).message);
}

void Supervisor::alive(const std::string& status) const {
  tell_without_waiting("WATCHDOG=1", status);
}

void Supervisor::stuck(const std::string& status) const {
  tell_without_waiting("", status);
}

void Supervisor::stopping(const std::string& status, std::optional<std::chrono::seconds> within) const {
  if (!within) return tell_without_waiting("STOPPING=1", status);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(*within).count();
  tell_without_waiting(("STOPPING=1\nEXTEND_TIMEOUT_USEC=" + std::to_string(micros)).c_str(), status);
}

void Supervisor::reloading() const {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto micros =
      static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000;
  tell_without_waiting(("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(micros)).c_str(), "");
}

void Supervisor::reloaded() const {
  tell_without_waiting("READY=1", "");
}

// sd_notify() waits while the service manager reads nothing, and the control thread has clients to serve. A sign of
// life that finds no room is left out; the next one follows.
void Supervisor::tell_without_waiting(const char* state, const std::string& status) const {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!interval_ || name == nullptr || std::strlen(name) >= sizeof address.sun_path) return;
  std::strcpy(address.sun_path, name);
  if (*name == '@') address.sun_path[0] = '\0';  // an abstract one
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(name));
  const std::string text = with_status(state, status);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const ssize_t sent = ::sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address), length);
  if (sent < 0 && errno != EAGAIN)
    log_warning(errno_error("telling the service manager " + std::string(state), errno).message);
}

}  // namespace millrace
