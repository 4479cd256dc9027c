// The number that makes fingerprints of this host's files its own. Thread-safe: a plain function.
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

// That of the state directory, made at random where there is none yet; one for this process alone where the folder is
// empty text, missing or not writable.
std::uint64_t seed_of(const std::string& state_dir);

}  // namespace millrace
