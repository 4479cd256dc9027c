// How often a test draws: seldom, so that all of them take seconds, and a third of that under sanitizers, where a draw takes some ten times as long.
// $MILLRACE_TEST_ROUNDS multiplies it; the long run sets it to 4 under sanitizers.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "proto/base/sanitized.h"

namespace millrace {

inline int rounds(int usual) {
  const char* const times = std::getenv("MILLRACE_TEST_ROUNDS");
  const int draws = kSanitized ? std::max(usual / 3, 1) : usual;
  return times == nullptr ? draws : draws * std::atoi(times);
}

// Of combinations counted up by `i`: every one, and under sanitizers every third unless more rounds are asked for.
inline bool is_taken(int i) {
  return !kSanitized || rounds(3) > 1 || i % 3 == 0;
}

}  // namespace millrace
