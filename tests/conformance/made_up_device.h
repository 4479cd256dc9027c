// A device made up for tests that has memory of its own. No pointer leads there: its one thread alone reads and writes
// it, in the order in which it was asked to. Others see it through a descriptor, as a process does that imports a
// device's memory.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "daemon/backend/health.h"
#include "daemon/memory/destination.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class MadeUpDevice {
 public:
  static constexpr MemoryId kMemory{1};

  // The device's thread: what it does to memory. Addresses are the device's; bytes that do not lie in one allocation
  // end the process.
  class Engine {
   public:
    void upload(std::uint64_t to, ByteView from);
    void fill_with_zeroes(std::uint64_t to, Bytes bytes);
    void move(std::uint64_t to, std::uint64_t from, Bytes bytes);  // they may overlap

   private:
    friend class MadeUpDevice;
    explicit Engine(MadeUpDevice& device) : device_(device) {}
    MadeUpDevice& device_;
  };
  enum class End : std::uint8_t { kDone, kLost };
  using Work = std::function<void(Engine&)>;

  MadeUpDevice() : thread_([this] { run_device(); }) {}
  ~MadeUpDevice();  // does what was asked for, held or not
  MadeUpDevice(const MadeUpDevice&) = delete;
  MadeUpDevice& operator=(const MadeUpDevice&) = delete;

  std::uint64_t allocate(Bytes bytes) MILLRACE_EXCLUDES(mutex_);  // zeroes. An address never comes twice
  void free(std::uint64_t address) MILLRACE_EXCLUDES(mutex_);
  std::size_t allocations() MILLRACE_EXCLUDES(mutex_);
  int descriptor(std::uint64_t address) MILLRACE_EXCLUDES(mutex_);  // of an allocation that begins there; borrowed

  // Does `work` on the device's thread, then tells `done` there, exactly once. A lost device does no work.
  void enqueue(Work work, std::function<void(End)> done) MILLRACE_EXCLUDES(mutex_);

  // Does nothing more before let_go().
  void hold() MILLRACE_EXCLUDES(mutex_);
  void let_go() MILLRACE_EXCLUDES(mutex_);
  std::size_t waiting() MILLRACE_EXCLUDES(mutex_);  // pieces of work
  // For ever. What waits ends as lost, held or not.
  void lose() MILLRACE_EXCLUDES(mutex_);
  bool lost() const MILLRACE_EXCLUDES(mutex_);
  void listen(HealthListener listener) { health_.listen(std::move(listener)); }  // nullptr: nobody

 private:
  struct Allocation {
    UniqueFd descriptor;
    Bytes bytes;
  };
  struct Place {
    int descriptor = -1;
    std::int64_t offset = 0;
  };
  struct Queued {
    Work work;
    std::function<void(End)> done;
  };

  Place place_of(std::uint64_t address, Bytes bytes) MILLRACE_EXCLUDES(mutex_);
  void run_device() MILLRACE_EXCLUDES(mutex_);

  mutable Mutex mutex_;
  Condition changed_;
  std::map<std::uint64_t, Allocation> allocations_ MILLRACE_GUARDED_BY(mutex_);
  std::deque<Queued> queue_ MILLRACE_GUARDED_BY(mutex_);
  std::uint64_t next_address_ MILLRACE_GUARDED_BY(mutex_) = std::uint64_t{1} << 62U;  // no host address
  bool held_ MILLRACE_GUARDED_BY(mutex_) = false;
  bool lost_ MILLRACE_GUARDED_BY(mutex_) = false;
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  HealthNews health_;
  std::thread thread_;
};

}  // namespace millrace
