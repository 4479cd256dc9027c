// What SIM_CUDA_* in the environment say; README.md lists them. Immutable once read, which happens at first use.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::sim {

inline constexpr int kMostDevices = 8;

struct Settings {
  int devices = 1;
  std::uint64_t vram_bytes = 0;     // of each device
  std::uint64_t context_bytes = 0;  // that a process's context takes of it
  std::uint32_t seed = 1;
  unsigned most_delay_us = 0;  // before an operation of a stream
  int capability = 90;         // ten times the major number, and the minor one
  int driver_version = 13000;
  int multiprocessors = 4;
  int kernels_at_once = 2;
  bool instant = false;            // kernels compute nothing
  bool strict = true;              // says on stderr what is refused, or legal and no good idea
  bool races = true;               // looks for operations that nothing orders
  bool trace = false;              // says each operation
  bool scramble = true;            // memory begins as 0xC7, not as zeros
  std::uint64_t copied = 0;        // bytes that a copy moves at most
  std::string durations;           // see durations.h
  bool vmm = true;                 // the device can share memory by descriptor
  bool peers = true;               // devices reach each other's memory
  bool read_only_register = true;  // CU_MEMHOSTREGISTER_READ_ONLY is supported
  int init_result = 0;             // of cuInit(); kDeviceUnavailable: of who retains a context
  std::string init_until;          // it is that until a file of this path is there; empty: always
  unsigned init_ms = 0;            // how long cuInit() takes
  std::string faults;              // see faults.h
  std::string control;             // path of the control file; empty: none
};

const Settings& settings();

// Whether a handle that is used after its end ends the process. Unlike all else it is read whenever it matters, so that
// a test can have it for itself.
bool strict_handles();

// A line on stderr, where settings().strict.
void complain(const char* what);

// With a line on stderr, for what has no defined end on the original: "a stream", "used after it was destroyed".
[[noreturn]] void end_process(const char* who, const char* what);

}  // namespace millrace::sim
