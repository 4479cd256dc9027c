// What the pipeline notes of a session's images for those who ask why its program waits, beside its states
// (observe/session_states.h). Thread-bound(control).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "daemon/observe/explain/slow_files.h"

namespace millrace {

struct SessionSigns {
  SlowFiles reading, making;
  std::chrono::nanoseconds decode{0};  // of CPU lanes
  std::uint64_t made = 0;              // images that a backend has made
  std::uint64_t left = 0;              // images that a device was first for, and did not make
  std::string why_left;                // the last of them: "cuda:0: ...", fit for people

  void note_left(const std::string& why) {
    ++left;
    if (why_left != why) why_left = why;
  }
};

}  // namespace millrace
