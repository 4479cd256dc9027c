#include "tests/support/cuda_driver/api/entry.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "tests/support/cuda_driver/capture.h"
#include "tests/support/cuda_driver/devices.h"
#include "tests/support/cuda_driver/illegal_access.h"
#include "tests/support/cuda_driver/settings.h"

namespace millrace::sim {
namespace {

using namespace cuda;

std::atomic<pid_t> initialised_by{0};
std::atomic<bool> ended{false};
thread_local Context* current = nullptr;

// Made when the library is loaded, so destroyed before what the program had made by then: no stream works on while the
// program's own objects go.
struct ProcessEnd {
  ~ProcessEnd() {
    if (initialised_by != getpid()) return;  // a child without the threads
    ended = true;
    Streams::get().stop_all();
  }
} process_end;

}  // namespace

CUresult host_result() {
  const std::string& until = settings().init_until;
  return !until.empty() && access(until.c_str(), F_OK) == 0 ? CUDA_SUCCESS : settings().init_result;
}

CUresult initialise() {
  static Mutex mutex;
  MutexLock lock(mutex);
  if (ended) return kDeinitialised;
  if (visible_devices() == 0) return CUDA_ERROR_NO_DEVICE;
  if (initialised_by == getpid()) return CUDA_SUCCESS;
  if (initialised_by != 0) return refuse("cuInit() after fork()", CUDA_ERROR_NOT_INITIALIZED);
  if (settings().init_ms != 0) usleep(settings().init_ms * 1000);
  if (const CUresult result = host_result(); result != kDeviceUnavailable) MILLRACE_RETURN_IF_FAILED(result);
  MILLRACE_RETURN_IF_FAILED(fault_now("init", "cuInit"));
  catch_illegal_access();
  initialised_by = getpid();
  return CUDA_SUCCESS;
}

CUresult enter_driver() {
  if (ended) return kDeinitialised;
  if (initialised_by == 0) return CUDA_ERROR_NOT_INITIALIZED;
  if (initialised_by != getpid()) return refuse("called after fork()", CUDA_ERROR_NOT_INITIALIZED);
  if (in_host_function()) return refuse("called from a host function", CUDA_ERROR_NOT_PERMITTED);
  return CUDA_SUCCESS;
}

CUresult enter_context() {
  MILLRACE_RETURN_IF_FAILED(enter_driver());
  if (current == nullptr) return refuse("called without a current context", CUDA_ERROR_INVALID_CONTEXT);
  if (current->retained == 0) return refuse("a context used after its release", CUDA_ERROR_INVALID_CONTEXT);
  return health_of(*current);
}

CUresult enter_unsafe() {
  MILLRACE_RETURN_IF_FAILED(enter_context());
  return Captures::get().unsafe_call();
}

CUresult enter_stream(CUstream stream, std::shared_ptr<Stream>& found) {
  MILLRACE_RETURN_IF_FAILED(enter_context());
  if (stream == nullptr) return refuse("the default stream is not simulated", CUDA_ERROR_NOT_SUPPORTED);
  const bool is_default = stream == reinterpret_cast<CUstream>(std::uintptr_t{1});  // CU_STREAM_LEGACY
  found = is_default ? Streams::get().default_of(*current) : Streams::get().find(stream);
  if (found == nullptr || &found->context() != current)
    return refuse("a stream of another context, or none", CUDA_ERROR_INVALID_HANDLE);
  return Captures::get().check(found.get());
}

CUresult enter_device(CUdevice device) {
  MILLRACE_RETURN_IF_FAILED(enter_driver());
  return index_of(device) < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

Context* current_context() {
  return current;
}
CUresult set_current_context(Context* context) {
  const auto is_it = [&](const Context& other) { return &other == context && other.retained > 0; };
  if (context != nullptr && std::ranges::none_of(objects().contexts, is_it))
    return refuse("no context, or one that was released, made current", CUDA_ERROR_INVALID_CONTEXT);
  current = context;
  return CUDA_SUCCESS;
}

CUresult refuse(const char* why, CUresult result) {
  complain(why);
  return result;
}

CUresult fault_now(const char* operation, const char* name) {
  const CUresult result = next_fault(operation, name).result;
  if (is_sticky(result) && current != nullptr) stick(*current, result);
  return result;
}

CUresult submit(Stream& stream, Operation operation) {
  operation.fault = next_fault(operation.engine == EngineKind::kCompute ? "launch" : "copy", operation.what);
  const CUresult result = operation.fault.result;
  if (result != CUDA_SUCCESS && !is_sticky(result)) return result;
  stream.push(std::move(operation));
  return CUDA_SUCCESS;
}

}  // namespace millrace::sim
