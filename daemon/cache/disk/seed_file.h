// The secret seed of this host's fingerprints of files (cache_key.h), and of what is kept under them. Thread-safe: plain
// functions.
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

struct StateSeed {
  std::uint64_t value = 0;
  bool kept = false;  // the next start has the same
};

// The seed that is kept in the folder; drawn at random and kept there if there is none yet, or less than one. If
// `state_dir` is empty text or no place for what is kept (fit_for_store.h), or the seed cannot be read, a random one for
// this process alone.
StateSeed seed_of(const std::string& state_dir);

std::string seed_path(const std::string& state_dir);

}  // namespace millrace
