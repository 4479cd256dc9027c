// CPU time of the process that owns a device, told to the jobs that it works for. Lanes share it, so a job is told what
// the process used since another one ended: of jobs side by side none has exactly its own, and together they have all.
//
//   begins() ──▶ ... ──▶ ends(): what was used since ends() of any lane, or since the first of them began
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "daemon/backend/device_host/hosted_device.h"
#include "proto/base/mutex.h"

namespace millrace::device_host {

class DeviceUse {
 public:
  // `device` outlives it.
  explicit DeviceUse(const HostedDevice& device) : device_(device) {}

  // A lane begins with a job. What the process used while none had one is no job's.
  void begins() MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (lanes_++ == 0) static_cast<void>(lap());
  }
  std::chrono::nanoseconds ends() MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    --lanes_;
    return lap();
  }

 private:
  std::chrono::nanoseconds lap() MILLRACE_REQUIRES(mutex_) {
    constexpr std::chrono::nanoseconds kNone{0};
    const std::shared_ptr<HostProcess> process = device_.current();
    if (!process) return kNone;
    if (of_.lock() != process) told_ = kNone;
    of_ = process;
    const std::chrono::nanoseconds now = process->cpu_time().value_or(told_);
    return now - std::exchange(told_, now);
  }

  const HostedDevice& device_;
  Mutex mutex_;
  std::uint32_t lanes_ MILLRACE_GUARDED_BY(mutex_) = 0;  // that have a job
  std::weak_ptr<HostProcess> of_ MILLRACE_GUARDED_BY(mutex_);
  std::chrono::nanoseconds told_ MILLRACE_GUARDED_BY(mutex_){0};  // of that process
};

}  // namespace millrace::device_host
