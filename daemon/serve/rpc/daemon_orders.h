// What an administrator can order of the daemon as a whole, as the service Admin asks for it; carried out by those who
// know all its parts (process/operation.h). Thread-bound(control): every call, and every callback.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/settings/changes.h"
#include "proto/base/result.h"

namespace millrace {

// What the settings file says now.
struct FileReading {
  std::vector<std::string> complaints;  // a line each; not empty: it cannot be taken
  std::vector<std::string> remarks{};   // what is odd about it all the same
  SettingChanges changes;               // between what was in force until now, and the file
};

struct Draining {
  bool on = false;
  bool stops = false;       // once it has drained, or its time is over
  bool time_over = false;   // daemon.drain_seconds
  std::size_t batches = 0;  // under way
  std::chrono::milliseconds left{0};
};

enum class ThenStop : std::uint8_t { kNo, kYes };

class DaemonOrders {
 public:
  virtual ~DaemonOrders() = default;

  // Reads the file, and puts in force what can change, or only compares. kPrecondition: there is no file. kExhausted:
  // it is being read already. `who`: for the log.
  virtual void reload(const std::string& who, std::function<void(Result<FileReading>)> done) = 0;
  virtual void compare(std::function<void(Result<FileReading>)> done) = 0;

  // No new work from here on; ordered again, the time begins anew, and it may stop afterwards. draining() says how far it
  // is.
  virtual void drain(const std::string& who, ThenStop then) = 0;
  virtual bool resume(const std::string& who) = 0;  // false: it did not drain
  virtual Draining draining() const = 0;
};

}  // namespace millrace
