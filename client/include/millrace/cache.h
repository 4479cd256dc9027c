// Orders about what the daemon keeps of images: Client::drop_cache(), Client::verify_cache(). Values.
#pragma once

#include <cstdint>

#include "millrace/result.h"

namespace millrace {
inline namespace client {

struct DropCache {
  bool memory = true;
  bool disk = true;
};

// What is gone.
struct DroppedCache {
  std::uint64_t memory_entries = 0;
  Bytes memory_bytes{};
  std::uint64_t disk_entries = 0;
  Bytes disk_bytes{};
  std::uint64_t disk_entries_left = 0;  // which other daemons that share the folder are writing to
};

struct VerifiedCache {
  std::uint64_t entries = 0;  // on disk, that were read
  std::uint64_t all = 0;      // of so many, as far as is known
  std::uint64_t wrong = 0;    // of them, and forgotten now; known at the end
};

}  // namespace client
}  // namespace millrace
