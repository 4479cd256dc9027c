// The secret seed of this host's fingerprints of files (index_key.h). Thread-safe: a plain function.
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

// The seed that is kept in `folder`; drawn at random and kept there if there is none yet. If `folder` is empty text,
// missing or not writable, a random one for this process alone.
std::uint64_t seed_of(const std::string& state_dir);

}  // namespace millrace
