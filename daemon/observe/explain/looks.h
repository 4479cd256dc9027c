// What the daemon had done for a session, and in all, at one moment. Sums since their beginning, so two looks tell what
// happened between them. Values.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "daemon/observe/session_states.h"

namespace millrace {

struct SessionLook {
  SessionStates::Clock::time_point at;
  SessionStates::Times times{};            // by state
  SessionStates::Times waits{};            // of the program, by state: as its client told, and what is presumed
  std::chrono::nanoseconds slot_waits{0};  // of what was told: times the slots that the program held meanwhile
  std::chrono::nanoseconds told{0};        // of what was told: all of it
  std::uint64_t waits_told = 0;            // batches
  std::uint64_t released = 0;              // batches that were given back
  std::uint64_t batches = 0, images = 0, bytes_read = 0;
  std::chrono::nanoseconds lanes{0}, decode{0};  // of CPU lanes: all, and in decoding
  std::uint64_t made = 0, left = 0;              // SessionSigns'
};

// What the kernel says.
struct HostLook {
  double busy = 0, idle = 0;                   // seconds of all processors; 0: it does not say
  double own = 0;                              // of these, the daemon's threads'
  double lanes_ran = 0, lanes_lacked = 0;      // seconds of CPU lanes: at work, and ready without a processor
  std::uint64_t periods = 0, periods_cut = 0;  // of cpu.max: all in which something ran, and those that ended too soon
  double cut = 0;                              // seconds that threads were kept from running so
};

struct DaemonLook {
  SessionStates::Clock::time_point at;
  std::chrono::nanoseconds lanes{0};  // of CPU lanes, for all sessions
  std::uint64_t bytes_read = 0;
  std::chrono::nanoseconds reading{0};  // of fetch threads
  std::uint64_t images = 0, first_touches = 0, cache_hits = 0, cache_misses = 0, cache_evictions = 0;
  std::uint64_t shortages = 0;  // pauses for want of descriptors or memory
  HostLook host;
};

}  // namespace millrace
