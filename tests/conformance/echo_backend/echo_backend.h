// A small backend, as an example: a device is a thread that decodes a picture whole, turns it, resamples it and stores
// it, one after the other. It takes neither patches nor files of several passes, and says so. daemon/doc/add_a_backend.md
// goes through it.
//
// Thread-safe. `done` is called on the device's thread; shutdown() must not be called from there.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "daemon/backend/backend_row.h"
#include "daemon/backend/cpu/decoders/pixel_buffer.h"
#include "kernels/cpu/workspace.h"
#include "proto/base/mutex.h"

namespace millrace {

struct EchoSettings {
  std::uint32_t devices = 2;  // 0: the backend is off
};
SettingsPart echo_settings();

// The row's: "echo:0", "echo:1", ..., each for pins only.
bool wants_echo(const Settings& settings);
Result<std::vector<std::unique_ptr<Backend>>> make_echo_backends(const Settings& settings,
                                                                 const BackendServices& services);

class EchoBackend final : public Backend {
 public:
  EchoBackend(std::uint32_t number, InForce<Limits> limits);
  ~EchoBackend() override { shutdown(); }

  BackendInfo info() const override;
  QueueDepth queue_depth() const override { return {.jobs = 2, .at_once = 1, .few = 1, .most = 8}; }
  Result<void> can_make(const SampleFacts& facts, const Recipe& recipe) const override;
  void listen(HealthListener) override {}  // a thread is not lost
  [[nodiscard]] bool try_submit(DecodeJob&& job) override MILLRACE_EXCLUDES(mutex_);
  void shutdown() override MILLRACE_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;

  struct Queued {
    DecodeJob job;
    Clock::time_point since;
  };
  // What the device keeps from sample to sample.
  struct Tools {
    PixelBuffer decoded, turned;
    kernels::Workspace arithmetic;
  };

  void run_device() MILLRACE_EXCLUDES(mutex_);
  bool next(Queued& queued) MILLRACE_EXCLUDES(mutex_);  // waits; false: shut down, and nothing is left
  SampleOutcome make(const Queued& queued, const SampleTask& task, Tools& tools) const MILLRACE_EXCLUDES(mutex_);
  Result<void> try_make(const DecodeJob& job, const SampleTask& task, Tools& tools) const;

  const std::uint32_t number_;
  const InForce<Limits> limits_;
  mutable Mutex mutex_;
  Condition changed_;
  std::deque<Queued> queue_ MILLRACE_GUARDED_BY(mutex_);
  std::uint32_t in_it_ MILLRACE_GUARDED_BY(mutex_) = 0;  // queued or running
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::once_flag shut_down_;
  std::thread device_;
};

}  // namespace millrace
