// The kernels that the simulated device knows, by their names in the module: each is run by the host's executor. A
// parameter comes as the driver gets it, as bytes of a known size; which of its members are device pointers only the
// kernel's entry knows, and translates them one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace millrace::sim {

struct Launch {
  int blocks = 0, threads = 0;
  std::size_t shared = 0;
  std::uint32_t seed = 0;
};

struct HostKernel {
  const char* name;
  std::size_t parameter_bytes;  // of its only parameter
  // Of a thread, and bytes of shared memory beside those of the launch: what ptxas of CUDA 13 says of the module's sm_90.
  std::size_t registers, static_shared;
  // Throws IllegalAddress: a pointer is none of the device's memory, or the launch has too little shared memory.
  void (*run)(const Launch& launch, std::span<const std::byte> parameter);
};

inline constexpr int kMostSharedMemory = 227 << 10;  // of a thread block, in bytes

// Null: there is none of that name.
const HostKernel* find_kernel(std::string_view name);

}  // namespace millrace::sim
