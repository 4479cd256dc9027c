// What the service manager that started the daemon hears from it, by sd_notify(3): that it can be used, that it stops,
// a line for `systemctl status`, and signs of life where it wants some (WatchdogSec=). Without one, which is without
// $NOTIFY_SOCKET, nothing is sent. Immutable; the calls are thread-safe, and only ready() ever waits.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace millrace {

class Supervisor {
 public:
  // Of this process, as its environment says.
  static Supervisor of_this_process();

  // How often it is to hear from us; nullopt: there is none.
  std::optional<std::chrono::microseconds> interval() const { return interval_; }

  // After so long without a sign of life it ends the daemon; nullopt: it never does.
  std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

  // Once, when every socket listens and what arrives there is answered. `status`: a line for people.
  void ready(const std::string& status) const;
  // A sign of life, and a new line for people unless `status` is empty.
  void alive(const std::string& status) const;
  // The line alone: no sign of life.
  void stuck(const std::string& status) const;
  // `within`: how long that may take, whatever the unit's TimeoutStopSec= says; nullopt: as long as the unit says.
  void stopping(const std::string& status, std::optional<std::chrono::seconds> within = {}) const;
  // Its settings are read again, and have been. For Type=notify-reload the former says when, too.
  void reloading() const;
  void reloaded() const;

 private:
  Supervisor(std::optional<std::chrono::microseconds> interval, std::optional<std::chrono::microseconds> watchdog)
      : interval_(interval), watchdog_(watchdog) {}

  void tell_without_waiting(const char* state, const std::string& status) const;

  std::optional<std::chrono::microseconds> interval_, watchdog_;
};

}  // namespace millrace
