// What this host, or this container, offers: processor, shared memory, limits. Needs no daemon. Thread-safe.
#pragma once

#include <string>

#include "client/cli/findings.h"

namespace millrace::cli {

// Where to look; tests look elsewhere.
struct HostPaths {
  std::string cpuinfo = "/proc/cpuinfo";
  std::string mounts = "/proc/self/mounts";
  std::string shared_memory = "/dev/shm";
};

Findings check_host(const HostPaths& paths = {});

}  // namespace millrace::cli
