// How often a test draws: seldom, so that all of them take seconds; a thorough run sets $MILLRACE_TEST_ROUNDS.
#pragma once

#include <cstdlib>

namespace millrace {

inline int rounds(int usual) {
  const char* const times = std::getenv("MILLRACE_TEST_ROUNDS");
  return times == nullptr ? usual : usual * std::atoi(times);
}

}  // namespace millrace
