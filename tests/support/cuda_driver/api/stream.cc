// Entry points: streams, events, words that streams write and wait for.
#include <algorithm>
#include <atomic>

#include "tests/support/cuda_driver/api/entry.h"
#include "tests/support/cuda_driver/capture.h"

namespace millrace::cuda {
namespace {

constexpr std::chrono::milliseconds kLook{1};  // how often a wait asks whether the device is still well

// In device memory, or in registered memory of the host.
std::uint64_t* find_word(CUdeviceptr at, bool write) {
  auto* const host = reinterpret_cast<std::uint64_t*>(at);
  if (sim::objects().pinned.holds(host, sizeof(*host))) return host;
  return reinterpret_cast<std::uint64_t*>(sim::Memory::get().find(at, sizeof(*host), write));
}

bool has_reached(CUdeviceptr at, std::uint64_t value) {
  std::uint64_t* const word = find_word(at, false);
  if (word == nullptr) return true;  // the operation fails then
  return static_cast<std::int64_t>(std::atomic_ref(*word).load(std::memory_order_acquire) - value) >= 0;
}

CUresult find_event(CUevent event, std::shared_ptr<Event>& found) {
  found = sim::objects().events.find(event);
  return found == nullptr ? sim::refuse("an event that there is not", CUDA_ERROR_INVALID_HANDLE) : CUDA_SUCCESS;
}

}  // namespace

MILLRACE_EXPORT cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  if (flags != CU_STREAM_NON_BLOCKING)
    return sim::refuse("a stream that waits for the default one is not simulated", CUDA_ERROR_NOT_SUPPORTED);
  const int allowed = std::clamp(priority, kGreatestPriority, kLeastPriority);
  *stream = sim::Streams::get().create(*sim::current_context(), allowed);
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuStreamDestroy_v2(CUstream stream) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  return sim::Streams::get().destroy(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

MILLRACE_EXPORT cuStreamSynchronize(CUstream of) {
  std::shared_ptr<Stream> stream;
  MILLRACE_RETURN_IF_FAILED(sim::enter_stream(of, stream));
  MILLRACE_RETURN_IF_FAILED(sim::Captures::get().refuse(stream.get(), kCaptureUnsupported));
  MILLRACE_RETURN_IF_FAILED(sim::enter_unsafe());
  return stream->synchronise();
}

MILLRACE_EXPORT cuStreamQuery(CUstream of) {
  std::shared_ptr<Stream> stream;
  MILLRACE_RETURN_IF_FAILED(sim::enter_stream(of, stream));
  MILLRACE_RETURN_IF_FAILED(sim::Captures::get().refuse(stream.get(), kCaptureUnsupported));
  MILLRACE_RETURN_IF_FAILED(sim::enter_unsafe());
  return stream->is_idle() ? stream->synchronise() : CUDA_ERROR_NOT_READY;
}

MILLRACE_EXPORT cuStreamBeginCapture_v2(CUstream of, int mode) {
  std::shared_ptr<Stream> stream;
  MILLRACE_RETURN_IF_FAILED(sim::enter_stream(of, stream));
  return sim::Captures::get().begin(stream.get(), mode);
}

MILLRACE_EXPORT cuStreamEndCapture(CUstream of, void** graph) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  *graph = nullptr;
  return sim::Captures::get().end(sim::Streams::get().find(of).get());
}

MILLRACE_EXPORT cuThreadExchangeStreamCaptureMode(int* mode) {
  *mode = sim::exchange_capture_mode(*mode);
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuStreamWaitEvent(CUstream of, CUevent event, unsigned) {
  std::shared_ptr<Stream> stream;
  std::shared_ptr<Event> found;
  MILLRACE_RETURN_IF_FAILED(sim::enter_stream(of, stream));
  MILLRACE_RETURN_IF_FAILED(find_event(event, found));
  sim::Captures& captures = sim::Captures::get();
  const std::shared_ptr<sim::EventState> state = found->state;
  const std::uint64_t record = state->recorded();
  if (found->captured_in != stream.get() && captures.has(found->captured_in))
    return sim::refuse("a capture of more than one stream is not simulated", CUDA_ERROR_NOT_SUPPORTED);
  if (found->captured_in == nullptr && record != 0)
    MILLRACE_RETURN_IF_FAILED(captures.refuse(stream.get(), kCaptureIsolation));
  sim::stream_learns(stream->index(), state->knows());
  stream->push({.what = "wait for event", .run = [waiter = stream.get(), state, record] {
                  return waiter->wait_until([&] { return state->wait(record, kLook); });
                }});
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuLaunchHostFunc(CUstream of, CUhostFn function, void* data) {
  std::shared_ptr<Stream> stream;
  MILLRACE_RETURN_IF_FAILED(sim::enter_stream(of, stream));
  const auto run = [function, data]() -> CUresult {
    sim::run_host_function(function, data);
    return CUDA_SUCCESS;
  };
  stream->push({.what = "host function", .run = run, .touches_device = false});
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuStreamWriteValue64_v2(CUstream of, CUdeviceptr at, std::uint64_t value, unsigned) {
  std::shared_ptr<Stream> stream;
  MILLRACE_RETURN_IF_FAILED(sim::enter_stream(of, stream));
  if (at % sizeof(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto run = [at, value]() -> CUresult {
    std::uint64_t* const word = find_word(at, true);
    if (word == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
    std::atomic_ref(*word).store(value, std::memory_order_release);
    return CUDA_SUCCESS;
  };
  stream->push({.what = "write value", .uses = {{at, sizeof(value)}}, .run = run});
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuStreamWaitValue64_v2(CUstream of, CUdeviceptr at, std::uint64_t value, unsigned flags) {
  std::shared_ptr<Stream> stream;
  MILLRACE_RETURN_IF_FAILED(sim::enter_stream(of, stream));
  if (flags != CU_STREAM_WAIT_VALUE_GEQ || at % sizeof(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto run = [waiter = stream.get(), at, value]() -> CUresult {
    MILLRACE_RETURN_IF_FAILED(waiter->wait_until([&] { return has_reached(at, value); }));
    return find_word(at, false) == nullptr ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
  };
  stream->push({.what = "wait for value", .uses = {{at, sizeof(value)}}, .run = run});
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuEventCreate(CUevent* event, unsigned flags) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  *event = sim::objects().events.add(std::shared_ptr<Event>(new Event{*sim::current_context(), flags}));
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuEventDestroy_v2(CUevent event) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  return sim::objects().events.remove(event) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

MILLRACE_EXPORT cuEventRecord(CUevent event, CUstream of) {
  std::shared_ptr<Stream> stream;
  std::shared_ptr<Event> found;
  MILLRACE_RETURN_IF_FAILED(sim::enter_stream(of, stream));
  MILLRACE_RETURN_IF_FAILED(find_event(event, found));
  if (&found->context != &stream->context()) return CUDA_ERROR_INVALID_HANDLE;
  const bool is_captured = sim::Captures::get().has(stream.get());
  found->captured_in = is_captured ? stream.get() : nullptr;
  if (is_captured) return CUDA_SUCCESS;
  const std::uint64_t record = found->state->record(sim::known_to_stream(stream->index()));
  stream->push({.what = "event", .run = [state = found->state, record]() -> CUresult {
                  state->complete(record);
                  return CUDA_SUCCESS;
                }});
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuEventQuery(CUevent event) {
  std::shared_ptr<Event> found;
  MILLRACE_RETURN_IF_FAILED(sim::enter_unsafe());
  MILLRACE_RETURN_IF_FAILED(find_event(event, found));
  MILLRACE_RETURN_IF_FAILED(sim::Captures::get().refuse(found->captured_in, kCapturedEvent));
  if (!found->state->is_complete(found->state->recorded())) return CUDA_ERROR_NOT_READY;
  sim::host_learns(found->state->knows());
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuEventSynchronize(CUevent event) {
  std::shared_ptr<Event> found;
  MILLRACE_RETURN_IF_FAILED(sim::enter_unsafe());
  MILLRACE_RETURN_IF_FAILED(find_event(event, found));
  MILLRACE_RETURN_IF_FAILED(sim::Captures::get().refuse(found->captured_in, kCapturedEvent));
  const std::uint64_t record = found->state->recorded();
  while (!found->state->wait(record, kLook)) MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  sim::host_learns(found->state->knows());
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuEventElapsedTime(float* milliseconds, CUevent first, CUevent last) {
  std::shared_ptr<Event> begin, end;
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  MILLRACE_RETURN_IF_FAILED(find_event(first, begin));
  MILLRACE_RETURN_IF_FAILED(find_event(last, end));
  if (((begin->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
  std::chrono::steady_clock::time_point from, to;
  if (!begin->state->completed_at(from) || !end->state->completed_at(to)) return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(to - from).count();
  return CUDA_SUCCESS;
}

}  // namespace millrace::cuda
