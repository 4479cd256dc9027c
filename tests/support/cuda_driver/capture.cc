#include "tests/support/cuda_driver/capture.h"

#include <utility>

#include "tests/support/cuda_driver/settings.h"

namespace millrace::sim {
namespace {

thread_local int mode_of_thread = kCaptureGlobal;

}  // namespace

using cuda::CUresult;

Captures& Captures::get() {
  static auto* const captures = new Captures;
  return *captures;
}

CUresult Captures::begin(const cuda::Stream* stream, int mode) {
  MutexLock lock(mutex_);
  const bool begun = captures_.try_emplace(stream, Capture{std::this_thread::get_id(), mode}).second;
  return begun ? cuda::CUDA_SUCCESS : cuda::CUDA_ERROR_INVALID_VALUE;
}

CUresult Captures::end(const cuda::Stream* stream) {
  MutexLock lock(mutex_);
  const auto found = captures_.find(stream);
  if (found == captures_.end()) return cuda::kIllegalState;
  const Capture capture = found->second;
  if (capture.mode != kCaptureRelaxed && capture.thread != std::this_thread::get_id()) return cuda::kCaptureWrongThread;
  captures_.erase(found);
  return capture.is_valid ? cuda::CUDA_SUCCESS : cuda::kCaptureInvalidated;
}

void Captures::drop(const cuda::Stream* stream) {
  MutexLock lock(mutex_);
  captures_.erase(stream);
}

bool Captures::has(const cuda::Stream* stream) const {
  MutexLock lock(mutex_);
  return captures_.contains(stream);
}

CUresult Captures::check(const cuda::Stream* stream) const {
  MutexLock lock(mutex_);
  const auto found = captures_.find(stream);
  return found == captures_.end() || found->second.is_valid ? cuda::CUDA_SUCCESS : cuda::kCaptureInvalidated;
}

CUresult Captures::refuse(const cuda::Stream* stream, CUresult result) {
  MutexLock lock(mutex_);
  const auto found = captures_.find(stream);
  if (found == captures_.end()) return cuda::CUDA_SUCCESS;
  found->second.is_valid = false;
  complain("a call that a capture forbids, on what is captured: it ended the capture");
  return result;
}

CUresult Captures::unsafe_call() {
  MutexLock lock(mutex_);
  if (mode_of_thread == kCaptureRelaxed) return cuda::CUDA_SUCCESS;
  bool is_forbidden = false;
  for (auto& [stream, capture] : captures_) {
    const bool is_own = capture.thread == std::this_thread::get_id();
    const bool is_others = capture.mode == kCaptureGlobal && mode_of_thread == kCaptureGlobal;
    if (is_own ? capture.mode == kCaptureRelaxed : !is_others) continue;
    capture.is_valid = false;
    is_forbidden = true;
  }
  if (!is_forbidden) return cuda::CUDA_SUCCESS;
  complain("a call that a capture forbids: it ended the capture");
  return cuda::kCaptureUnsupported;
}

int exchange_capture_mode(int mode) {
  return std::exchange(mode_of_thread, mode);
}

}  // namespace millrace::sim
