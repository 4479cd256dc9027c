// A process that owns a device for the daemon, as the daemon has it: started, greeted, killed, reaped. What the two say to
// each other is the backend's.
//
//   start_process() ──▶ greet() ──▶ it is asked ──▶ end(), or it dies ──▶ is_gone()
//
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "proto/base/mutex.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace::device_host {

class HostProcess {
 public:
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;
  virtual ~HostProcess();  // ends it, and waits for it a while

  // Once; returns when it can be asked, or has ended, or does not come up in `patience`. kUnsupported, kExhausted,
  // kUnavailable: in its own words.
  virtual Result<void> greet(std::chrono::milliseconds patience) = 0;

  // Kills it: a thread that asks it gets kUnavailable.
  void end() MILLRACE_EXCLUDES(mutex_);
  // Whether it has ended, and its memory with it. A device that hangs may keep a killed process for long.
  bool is_gone() MILLRACE_EXCLUDES(mutex_);
  // "of signal 9", "with status 1"; empty: it has not, or end() was first.
  std::string how_it_ended() const MILLRACE_EXCLUDES(mutex_);
  // CPU time that it has used; nullopt: it has ended.
  std::optional<std::chrono::nanoseconds> cpu_time() const MILLRACE_EXCLUDES(mutex_);
  // To be polled: hangs up when it ends. Nothing comes from it after greet().
  int end_of_it() const { return control_.get(); }

 protected:
  HostProcess(UniqueFd control, pid_t pid);
  int control() const { return control_.get(); }

 private:
  const UniqueFd control_;
  const pid_t pid_;
  mutable Mutex mutex_;
  bool gone_ MILLRACE_GUARDED_BY(mutex_) = false, ended_ MILLRACE_GUARDED_BY(mutex_) = false;
  int code_ MILLRACE_GUARDED_BY(mutex_) = 0, status_ MILLRACE_GUARDED_BY(mutex_) = 0;  // as waitid() says
};

}  // namespace millrace::device_host
