// A stream: a thread that does its operations in order, each after a delay that SIM_CUDA_SEED draws. For a while a
// stream is in a hurry, usual (up to SIM_CUDA_DELAY_US), or late by a hundred times as much: an order that nothing
// enforces breaks with some of the seeds, however long the operations are.
//
// Thread-safe. Its end is bounded: at the process's end, streams are told to stop, and waited for.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "proto/base/mutex.h"
#include "tests/support/cuda_driver/context.h"
#include "tests/support/cuda_driver/engine.h"
#include "tests/support/cuda_driver/faults.h"
#include "tests/support/cuda_driver/handles.h"
#include "tests/support/cuda_driver/order.h"

namespace millrace::sim {

// Bytes of a device, or of registered memory of the host.
struct Span {
  cuda::CUdeviceptr at = 0;
  std::size_t size = 0;
};

struct Operation {
  EngineKind engine = EngineKind::kNone;
  std::string what;
  std::vector<Span> uses = {};  // what it may read and write
  std::function<cuda::CUresult()> run;
  Fault fault = {};            // instead of running
  bool touches_device = true;  // false: the caller's own code
};

}  // namespace millrace::sim

namespace millrace::cuda {

// The priorities of streams, from the last to the first.
inline constexpr int kLeastPriority = 0, kGreatestPriority = -5;

struct Stream {
  Stream(Context& context, int priority, std::uint32_t seed);
  ~Stream();  // REQUIRES: has_ended()

  void push(sim::Operation operation);
  // Until it is empty; what the context answers then.
  CUresult synchronise();
  bool is_idle() const;
  // Whether it still has an operation that uses some of `memory`; and until it has none.
  bool is_using(sim::Span memory) const;
  void wait_for_uses(sim::Span memory);

  // Its thread ends once it is empty, or at once with `stop`.
  void close();
  void stop();
  bool has_ended() const { return ended_; }
  // REQUIRES: not called by an operation of this stream.
  bool wait_for_end(std::chrono::steady_clock::time_point deadline);
  bool is_this_thread() const { return thread_.get_id() == std::this_thread::get_id(); }

  // For operations that wait: until `ready`, or until nothing is to be waited for any more.
  CUresult wait_until(const std::function<bool()>& ready) const;

  Context& context() const { return context_; }
  std::size_t index() const { return index_; }

 private:
  struct Entry {
    sim::Operation operation;
    sim::Stamp stamp;
  };
  bool has_use(sim::Span memory) const MILLRACE_REQUIRES(mutex_);
  void work();
  bool take(Entry& entry);
  void run(const sim::Operation& operation);
  CUresult result_of(const sim::Operation& operation);
  unsigned next_delay_us();

  Context& context_;
  const int priority_;
  const std::size_t index_ = sim::add_stream();
  std::atomic<bool> stopping_{false}, ended_{false};
  std::minstd_rand random_;
  unsigned turn_ = 0, mood_ = 0;

  mutable Mutex mutex_;
  Condition changed_;
  std::deque<Entry> queue_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<sim::Span> busy_with_ MILLRACE_GUARDED_BY(mutex_);  // the uses of what runs
  bool busy_ MILLRACE_GUARDED_BY(mutex_) = false, closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace millrace::cuda

namespace millrace::sim {

// All streams of the process. Thread-safe.
class Streams {
 public:
  static Streams& get();  // never destroyed

  cuda::CUstream create(cuda::Context& context, int priority) { return living_.add(make(context, priority)); }
  // Null: there never was one.
  std::shared_ptr<cuda::Stream> find(cuda::CUstream stream) const { return living_.find(stream); }
  // The default stream, made when it is first asked for. It waits for no other one: all others are non-blocking.
  std::shared_ptr<cuda::Stream> default_of(cuda::Context& context);
  // Of all of them, destroyed ones as well.
  bool is_using(Span memory) const;
  void wait_for_uses(Span memory);
  // What it still has to do is done; nobody waits.
  bool destroy(cuda::CUstream stream);
  // At the process's end: no operation begins any more, and threads end, but for one that the caller's code or a
  // kernel holds up for more than some seconds.
  void stop_all();

 private:
  std::shared_ptr<cuda::Stream> make(cuda::Context& context, int priority);
  void drop_ended() MILLRACE_REQUIRES(mutex_);
  std::vector<std::shared_ptr<cuda::Stream>> all() const;

  Handles<cuda::Stream> living_{"a stream", std::uintptr_t{1} << 32};
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<cuda::Stream>> closed_ MILLRACE_GUARDED_BY(mutex_);
  std::map<cuda::Context*, std::shared_ptr<cuda::Stream>> defaults_ MILLRACE_GUARDED_BY(mutex_);  // living ones
  std::uint32_t created_ MILLRACE_GUARDED_BY(mutex_) = 0;
};

// Whether this thread is in a host function, where the driver must not be called.
bool in_host_function();
void run_host_function(cuda::CUhostFn function, void* data);

}  // namespace millrace::sim
