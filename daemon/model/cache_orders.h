// What people order of the cache, beside what samples ask of it. Thread-safe, as its implementation says.
#pragma once

#include <cstdint>
#include <functional>

#include "proto/base/result.h"

namespace millrace {

struct CacheTiers {
  bool memory = false, disk = false;
};

struct CacheDropped {
  struct Sum {
    std::uint64_t entries = 0, bytes = 0;
  };
  Sum memory, disk;
  std::uint64_t left_on_disk = 0;  // entries that other daemons have written meanwhile, or are writing
};

struct CacheVerified {
  std::uint64_t entries = 0;
  std::uint64_t wrong = 0;  // forgotten now
};

class CacheOrders {
 public:
  // How many of how many are done; false ends it.
  using Progress = std::function<bool(std::uint64_t done, std::uint64_t all)>;

  virtual ~CacheOrders() = default;

  // Empties these tiers, for what is asked for from then on: images under way keep what they hold, and keep what they
  // make. Waits for it, a second for some gigabytes. kPrecondition: the disk alone, and there is none.
  virtual Result<CacheDropped> drop(CacheTiers tiers) = 0;
  // Reads all that is on disk, while others read it too, and forgets what is not what was written. Takes as long as the
  // disk does. kPrecondition: nothing is kept on disk; says why.
  virtual Result<CacheVerified> verify(const Progress& progress) = 0;
};

}  // namespace millrace
