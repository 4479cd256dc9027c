// The roots beneath which files are opened: those that the settings file named at the start, or when the daemon last had
// it read again. Only the file says them, and the opener alone knows which file that is. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/fetch/open/root_name.h"
#include "daemon/model/in_force.h"
#include "proto/base/result.h"

namespace millrace {

class ServedRoots {
 public:
  using Names = std::vector<std::string>;  // absolute

  // `read`: what the file names now; called by any thread.
  ServedRoots(const Names& names, std::function<Result<Names>()> read)
      : read_(std::move(read)), in_force_(as_roots(names)) {}

  // Shared: a thread that opens files keeps those that it began with.
  std::shared_ptr<const std::vector<RootName>> now() const { return in_force_.now(); }

  // An error, which is that of reading: those of before stay.
  Result<void> read_again() {
    MILLRACE_TRY(const Names names, read_());
    in_force_.put(as_roots(names));
    return {};
  }

 private:
  static std::shared_ptr<const std::vector<RootName>> as_roots(const Names& names) {
    return std::make_shared<const std::vector<RootName>>(names.begin(), names.end());
  }

  const std::function<Result<Names>()> read_;
  InForce<std::shared_ptr<const std::vector<RootName>>> in_force_;
};

}  // namespace millrace
