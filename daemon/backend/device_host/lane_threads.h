// The threads of a backend whose device belongs to another process: each takes jobs from one queue and works them off
// through its own channel to the process. Thread-safe. `done` of a job is called on these threads; shutdown() must not be
// called from there.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/backend/device_host/device_use.h"
#include "daemon/backend/job_queue.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "proto/base/mutex.h"

namespace millrace::device_host {

class LaneThreads {
 public:
  // An outcome for each task of the job, in order. `stopped`: whether what has not begun is to be left.
  using WorkOff = std::function<std::vector<SampleOutcome>(
      std::uint32_t lane, const DecodeJob& job, const SampleLimits& limits, const std::function<bool()>& stopped)>;

  // `device`: outlives it. `depth`: jobs that wait or run. `name`: of the threads, which get a number behind it.
  LaneThreads(const HostedDevice& device, std::uint32_t lanes, std::uint32_t depth, const std::string& name,
              InForce<Limits> limits, WorkOff work_off);
  LaneThreads(const LaneThreads&) = delete;
  LaneThreads& operator=(const LaneThreads&) = delete;
  ~LaneThreads() {
    shutdown([] {});
  }

  [[nodiscard]] bool try_submit(DecodeJob&& job) { return queue_.try_push(std::move(job)); }

  // Queued jobs come back as cancelled. Lanes have five seconds for what is under way; then `stop_device` has to end
  // whatever they wait for, and what they lose by that comes back as cancelled, too. Idempotent.
  void shutdown(const std::function<void()>& stop_device);

 private:
  void run(std::uint32_t lane);

  const InForce<Limits> limits_;
  const WorkOff work_off_;
  DeviceUse use_;
  JobQueue queue_;
  std::once_flag shut_down_;
  Mutex mutex_;
  Condition ended_;
  std::atomic<bool> device_is_stopped_ = false;
  std::uint32_t running_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace millrace::device_host
