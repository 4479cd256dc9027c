// Listings of the same folder by several sessions, kept once: a job's ranks list the same tree, and each its own copy of
// the paths would be most of what the daemon keeps. Two are the same if every path, label and class is; who listed it
// with less rights has another one. Each user who has a listing is charged for it once, however many of his sessions
// have it.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/model/files/dataset.h"
#include "proto/base/mutex.h"

namespace millrace {

class SharedListings {
 public:
  // The listing that stands in for `listed`, as long as somebody has it. `room`: what it was charged with while it was
  // made, to its user; what is too much of it is given back. Compares contents, so it is not for the control thread.
  std::shared_ptr<const Dataset> keep(std::shared_ptr<const Dataset> listed, Charge room, UserId user)
      MILLRACE_EXCLUDES(mutex_);

 private:
  struct Held {                              // by a user
    std::shared_ptr<const Dataset> listing;  // shared by all users who have it
    Charge charge;
  };
  struct Known {
    std::weak_ptr<const Dataset> listing;
    std::map<UserId, std::weak_ptr<const Held>> users;
  };
  using ByFingerprint = std::multimap<std::uint64_t, Known>;

  std::vector<std::shared_ptr<const Dataset>> alike(std::uint64_t fingerprint) MILLRACE_EXCLUDES(mutex_);
  Known& known(const std::shared_ptr<const Dataset>& listing) MILLRACE_REQUIRES(mutex_);

  Mutex mutex_;
  ByFingerprint known_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
