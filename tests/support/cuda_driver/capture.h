// Captures of streams into CUDA graphs, as far as they stand in the way of other calls: what a capturing stream is given
// is dropped, and the graph that comes of it is null. Calls that a capture forbids end it, as NVIDIA's driver has it: the
// thread that captures hears of it at the end. Thread-safe.
#pragma once

#include <map>
#include <thread>

#include "proto/base/mutex.h"
#include "proto/cuda/driver_api.h"

namespace millrace::cuda {

// Results that driver_api.h has no name for.
inline constexpr CUresult kIllegalState = 401, kCaptureUnsupported = 900, kCaptureInvalidated = 901,
                          kCaptureIsolation = 905, kCapturedEvent = 907, kCaptureWrongThread = 908;

}  // namespace millrace::cuda

namespace millrace::sim {

// Of a capture, and of what a thread expects of others' captures.
enum : int { kCaptureGlobal = 0, kCaptureThreadLocal = 1, kCaptureRelaxed = 2 };

class Captures {
 public:
  static Captures& get();  // never destroyed

  cuda::CUresult begin(const cuda::Stream* stream, int mode);
  // What became of it. By the thread that began it, unless it is a relaxed one.
  cuda::CUresult end(const cuda::Stream* stream);
  void drop(const cuda::Stream* stream);
  bool has(const cuda::Stream* stream) const;

  // Before anything is given to the stream.
  cuda::CUresult check(const cuda::Stream* stream) const;
  // Of a call that says or waits how far a stream or an event is, which is in no capture.
  cuda::CUresult refuse(const cuda::Stream* stream, cuda::CUresult result);
  // Of a call that may wait for the device or change its memory: not while this thread captures, and not while any other
  // one does so globally, unless this thread said that it knows (cuThreadExchangeStreamCaptureMode).
  cuda::CUresult unsafe_call();

 private:
  struct Capture {
    std::thread::id thread;
    int mode = kCaptureGlobal;
    bool is_valid = true;
  };
  mutable Mutex mutex_;
  std::map<const cuda::Stream*, Capture> captures_ MILLRACE_GUARDED_BY(mutex_);
};

// This thread's mode; returns the one before.
int exchange_capture_mode(int mode);

}  // namespace millrace::sim
