// Why programs wait for their batches: what Client::explain brings. Values.
//
// What the codes mean, and what to do about each: daemon/doc/why.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "millrace/result.h"

namespace millrace {
inline namespace client {

struct Figure {
  std::string name{};  // "disk_bytes_per_second"
  std::string unit{};  // "bytes", "seconds", "" for plain counts
  double value = 0;
};

// One cause of waiting.
struct Finding {
  std::string code{};            // "slow_disk": for programs, for good; further ones may come
  double share = 0;              // of the time that the program waited, 0 to 1
  std::string text{};            // what it is, for people
  std::string advice{};          // what to change, for people
  double images_per_second = 0;  // what the program would reach without it; 0: not known
  std::vector<Figure> figures{};
  std::vector<std::string>
      paths{};  // slow files, or a root, byte for byte; only for the session's user and administrators
};

// Of the last ten minutes, the oldest first.
struct History {
  std::chrono::duration<double> step{};  // that each value stands for
  std::vector<float> images_per_second{};
  std::vector<float> waited{};  // share of the time, 0 to 1
};

struct SessionFindings {
  std::uint64_t id = 0;
  std::string name{};
  std::uint32_t uid = 0;
  std::string job{};
  std::chrono::duration<double> time{};  // that it looks back over
  double images_per_second = 0;
  double waited = 0;  // share of that time that the program waited, 0 to 1
  bool waits_told =
      false;  // false: the client does not say how long the program waits; shares are of the session's time
  std::vector<Finding> findings{};  // the dearest first; of a session that does not wait, one that says so
  History history{};                // empty unless asked for
};

}  // namespace client
}  // namespace millrace
