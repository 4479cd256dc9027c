// What all processes on one simulated host share: the file that SIM_CUDA_CONTROL names (none: a page of this process
// alone). All zero is a good beginning. Each process holds a lock on a byte of the file: the kernel lets go of it with
// the process, however that ends, and what it had of a device's memory counts no longer.
//
// Thread-safe, and safe between processes.
#pragma once

#include <atomic>
#include <cstdint>

#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"
#include "tests/support/cuda_driver/settings.h"

namespace millrace::sim {

// Written by millrace_cuda_sim, read by every process.
struct DeviceControl {
  std::atomic<int> lost;  // what every call returns; 0: the device is well
  std::atomic<std::uint32_t> milliwatt, celsius, busy_percent;
};

class Control {
 public:
  static Control& get();  // never destroyed

  DeviceControl& device(int device) { return page_->devices[device]; }

  // False: the device has no room, and nothing is charged.
  bool charge(int device, std::uint64_t bytes);
  void release(int device, std::uint64_t bytes);
  // By all processes that live.
  std::uint64_t used(int device);

 private:
  static constexpr int kMostProcesses = 64;
  struct Page {
    DeviceControl devices[kMostDevices];
    struct {
      std::atomic<std::uint64_t> bytes[kMostDevices];
    } processes[kMostProcesses];
  };

  Control();
  int mine() MILLRACE_EXCLUDES(mutex_);
  bool lock_slot(int slot, int command) const;  // false: another process has it
  UniqueFd file_;
  Page* page_ = nullptr;
  Mutex mutex_;
  int slot_ MILLRACE_GUARDED_BY(mutex_) = -1;  // of this process
};

}  // namespace millrace::sim
