// A device that comes back: the process that owns it now, and the thread that starts and watches them.
//
//   start() ──▶ current(): a process ◀────────────────────────────────────────┐
//                  │ lost(process, why), or it ends by itself                 │ health: ready
//                  ▼                                                         │
//               health: lost ──▶ killed, waited for ──▶ a pause ──▶ started anew
//                                                       └─ 1 s, 2 s, 4 s ... 60 s; 1 s again after a minute of health
//
// One that nobody has used for a while may rest: its process ends, it stays ready, and wanted() starts another one.
//
//   ready ──rest_after without wanted() or keep_awake()──▶ resting ──wanted()──▶ a process, or lost
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "daemon/backend/device_host/host_process.h"
#include "daemon/backend/health.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"

namespace millrace::device_host {

// What a device is, for whom a process is started again and again.
struct DeviceDescription {
  std::string what;                                             // "GPU", for people
  std::string thread;                                           // of the one that keeps it, up to 15 characters
  std::function<Result<std::shared_ptr<HostProcess>>()> start;  // kExhausted, kInternal: there is none
  std::chrono::milliseconds rest_after{0};                      // 0: it never rests
};

class HostedDevice {
 public:
  // Waits for the first process, a while. kUnsupported: this device will not do, whatever is tried; kInternal: nor will
  // the program. Where it fails otherwise, or takes longer, the device begins as a lost one.
  Result<void> start();
  // The same in two steps, so that several devices come up at once.
  Result<void> begin();
  Result<void> wait_until_begun();
  explicit HostedDevice(DeviceDescription description);
  HostedDevice(const HostedDevice&) = delete;
  HostedDevice& operator=(const HostedDevice&) = delete;
  ~HostedDevice() { stop(); }

  HealthNews& health() { return health_; }

  // nullptr: it is lost, or rests.
  std::shared_ptr<HostProcess> current() const MILLRACE_EXCLUDES(mutex_);
  // The same for a caller that has work for it: one that rests is waited for; where none comes up in `patience` the device
  // is lost until it does. nullptr: it is lost, or stop() was called.
  std::shared_ptr<HostProcess> wanted(std::chrono::milliseconds patience) MILLRACE_EXCLUDES(mutex_)
      MILLRACE_EXCLUDES(telling_);
  // It does not rest while somebody has this.
  std::shared_ptr<const void> keep_awake() const { return awake_; }

  // `process` is of no more use. When this returns, the listener has been told. Nothing if it is not the current one, or
  // after stop().
  void lost(const std::shared_ptr<HostProcess>& process, const std::string& why) MILLRACE_EXCLUDES(mutex_)
      MILLRACE_EXCLUDES(telling_);

  // Ends the process, and no other is started. Idempotent; not to be called by two threads at once.
  void stop() MILLRACE_EXCLUDES(mutex_);

 private:
  void run_keeper();
  bool bring_up() MILLRACE_EXCLUDES(mutex_) MILLRACE_EXCLUDES(telling_);
  void watch() MILLRACE_EXCLUDES(mutex_);
  int until_rest() const MILLRACE_EXCLUDES(mutex_);
  bool rest() MILLRACE_EXCLUDES(mutex_) MILLRACE_EXCLUDES(telling_);
  bool resting() const MILLRACE_EXCLUDES(mutex_);
  bool wait_until_wanted() MILLRACE_EXCLUDES(mutex_);
  bool wait_for_its_end() MILLRACE_EXCLUDES(mutex_);
  bool wait(std::chrono::milliseconds time) MILLRACE_EXCLUDES(mutex_);
  void wake_keeper();
  bool first_came_to(const Result<void>& how) MILLRACE_EXCLUDES(mutex_) MILLRACE_EXCLUDES(telling_);
  Result<void> wait_for_first() MILLRACE_EXCLUDES(mutex_);
  bool closed() const MILLRACE_EXCLUDES(mutex_);

  const DeviceDescription is_;
  const std::shared_ptr<const void> awake_ = std::make_shared<int>(0);
  UniqueFd woken_;  // an eventfd: the keeper looks up from what it polls
  HealthNews health_;
  Mutex telling_;  // news in order, and told before anybody goes on
  mutable Mutex mutex_;
  Condition changed_;
  std::shared_ptr<HostProcess> current_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<HostProcess> latest_ MILLRACE_GUARDED_BY(mutex_);  // current, beginning or dying
  std::optional<Result<void>> first_ MILLRACE_GUARDED_BY(mutex_);    // what the first start came to
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  bool rests_ MILLRACE_GUARDED_BY(mutex_) = false;  // until it has come up again, or has not
  bool is_wanted_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point used_ MILLRACE_GUARDED_BY(mutex_){};
  std::thread keeper_;
};

// The same, of processes of one kind.
template <class Process>
class Owned : public HostedDevice {
 public:
  using HostedDevice::HostedDevice;
  std::shared_ptr<Process> current() const { return std::static_pointer_cast<Process>(HostedDevice::current()); }
  std::shared_ptr<Process> wanted(std::chrono::milliseconds patience) {
    return std::static_pointer_cast<Process>(HostedDevice::wanted(patience));
  }
};

}  // namespace millrace::device_host
