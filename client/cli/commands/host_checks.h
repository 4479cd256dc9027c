// What this host, or this container, offers: processor, shared memory, limits. Needs no daemon. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "client/cli/text/findings.h"

namespace millrace::cli {

// Where to look; tests look elsewhere.
struct HostPaths {
  std::string cpuinfo = "/proc/cpuinfo";
  std::string mounts = "/proc/self/mounts";
  std::string shared_memory = "/dev/shm";
  std::string nvidia = "/proc/driver/nvidia";
};

Findings check_host(const HostPaths& paths = {});

// NVIDIA's GPUs and their driver, as the kernel has them; `used`: whether the daemon uses any. Nothing where there are
// none.
Findings check_gpus(bool used, const HostPaths& paths = {});

// NVIDIA's GPUs whose compute mode keeps the daemon or a training job out, as NVIDIA's management library says it. Nothing
// where the library is not.
Findings check_compute_modes();

// Device::instruction_sets: those that the daemon can use on this processor, of which its arithmetic alone knows what
// they take.
Finding check_instruction_sets(const std::vector<std::string>& sets);

}  // namespace millrace::cli
