// How often a test draws: seldom, so that all of them take seconds, and a third of that under sanitizers, where a draw takes some ten times as long.
// $MILLRACE_TEST_ROUNDS multiplies it; the long run sets it to 4 under sanitizers.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/support/under_sanitizer.h"

namespace millrace {

inline int rounds(int usual) {
  const char* const times = std::getenv("MILLRACE_TEST_ROUNDS");
  const int draws = under_sanitizer() ? std::max(usual / 3, 1) : usual;
  if (times == nullptr) return draws;
  const int many = std::atoi(times);
  if (many < 1) {
    std::fprintf(stderr, "MILLRACE_TEST_ROUNDS is `%s`: a whole number from 1 on is wanted\n", times);
    std::abort();
  }
  return draws * many;
}

// Of combinations counted up by `i`: every one, and under sanitizers every third unless more rounds are asked for.
inline bool is_taken(int i) {
  return !under_sanitizer() || rounds(3) > 1 || i % 3 == 0;
}

}  // namespace millrace
