// What the driver's handles stand for. Handles are checked: one that was destroyed, or never made, is found out. Each
// table is thread-safe.
#pragma once

#include <map>
#include <memory>

#include "proto/base/mutex.h"
#include "tests/support/cuda_driver/event.h"
#include "tests/support/cuda_driver/handles.h"
#include "tests/support/cuda_driver/kernels.h"
#include "tests/support/cuda_driver/memory.h"
#include "tests/support/cuda_driver/settings.h"
#include "tests/support/cuda_driver/stream.h"

namespace millrace::cuda {

struct Event {
  Context& context;
  const unsigned flags;
  std::atomic<Stream*> captured_in{nullptr};  // where it was last recorded, if that was in a capture
  const std::shared_ptr<sim::EventState> state = std::make_shared<sim::EventState>();
};

struct Module {
  Context& context;
};

struct Function {
  Context& context;
  Module* const module;
  const sim::HostKernel& kernel;
  std::atomic<int> dynamic_shared{48 << 10};
};

}  // namespace millrace::cuda

namespace millrace::sim {

// Memory of the host that is registered, which copies read and write when their turn comes. Pages are registered whole,
// what lies beside a range in its pages is none of it all the same.
class PinnedMemory {
 public:
  bool add(const void* at, std::size_t size);  // false: one of its pages is registered already
  bool remove(const void* at);                 // false: begins no registered memory
  std::size_t size_of(const void* at) const;   // of what begins there; 0: none does
  bool holds(const void* at, std::size_t size) const;

 private:
  mutable Mutex mutex_;
  std::map<const std::byte*, std::size_t> ranges_ MILLRACE_GUARDED_BY(mutex_);
};

// Physical memory by cuMemCreate's handles.
class MemoryHandles {
 public:
  cuda::CUmemGenericAllocationHandle add(std::shared_ptr<Physical> physical);
  std::shared_ptr<Physical> find(cuda::CUmemGenericAllocationHandle handle) const;
  bool remove(cuda::CUmemGenericAllocationHandle handle);

 private:
  mutable Mutex mutex_;
  cuda::CUmemGenericAllocationHandle next_ MILLRACE_GUARDED_BY(mutex_) = 0x51;
  std::map<cuda::CUmemGenericAllocationHandle, std::shared_ptr<Physical>> held_ MILLRACE_GUARDED_BY(mutex_);
};

struct Objects {
  cuda::Context contexts[kMostDevices];
  Handles<cuda::Event> events{"an event", std::uintptr_t{2} << 32};
  Handles<cuda::Module> modules{"a module", std::uintptr_t{3} << 32};
  Handles<cuda::Function> functions{"a function", std::uintptr_t{4} << 32};
  PinnedMemory pinned;
  MemoryHandles handles;
};
Objects& objects();  // never destroyed

}  // namespace millrace::sim
