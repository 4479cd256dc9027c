#include "client/cli/trace/run_trace.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "client/cli/trace/trace_call.h"
#include "proto/base/start_thread.h"

namespace millrace::cli {
namespace {

constexpr double kLongest = 600;  // seconds: what the daemon allows
constexpr std::chrono::seconds kEndPatience{5};
constexpr std::size_t kOwnBytes = 64U << 10U;  // written at once
constexpr std::uint32_t kSequence = 2;         // the daemon's is 1

// Rows that no daemon has.
std::uint64_t own_row(std::uint64_t kind) {
  return (kind << 60U) | (static_cast<std::uint64_t>(::getpid()) << 36U);
}
const std::uint64_t kProcessRow = own_row(0xE), kProgramRow = own_row(0xF);

std::int64_t monotonic_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

RunTrace::RunTrace(std::unique_ptr<PacketFile> file) : file_(std::move(file)), own_(kSequence) {
  own_.clocks();
  own_.process(kProcessRow, ::getpid(), "millrace run");
  own_.track(kProgramRow, kProcessRow, "program");
}

Result<std::unique_ptr<RunTrace>> RunTrace::begin(const std::string& socket, std::uint64_t session,
                                                  const std::string& path) {
  MILLRACE_TRY(std::unique_ptr<PacketFile> file, PacketFile::create(path));
  std::unique_ptr<RunTrace> trace(new RunTrace(std::move(file)));
  MILLRACE_TRY(trace->thread_,
               start_thread("trace", [&own = *trace, socket, session] { own.record(socket, session); }));
  {
    MutexLock lock(trace->mutex_);
    while (!trace->has_begun_ && !trace->has_ended_) trace->changed_.wait(trace->mutex_);
    if (trace->has_begun_) return trace;
  }
  MILLRACE_TRY_VOID(trace->finish());
  return Error{Code::kInternal, "the daemon ended the recording at its begin"};
}

RunTrace::~RunTrace() {
  unwanted_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void RunTrace::record(const std::string& socket, std::uint64_t session) {
  const auto all = [&]() -> Result<void> {
    MILLRACE_TRY(TraceCall call, TraceCall::connect(socket));
    return call.record({.seconds = kLongest, .session = session},
                       {.take = [this](const std::string& packets) { return take(packets); },
                        .goes_on = [this] { return !unwanted_.load(std::memory_order_relaxed); }});
  };
  Result<void> ended = all();
  MutexLock lock(mutex_);
  has_ended_ = true;
  if (!ended) failed_ = std::move(ended).error();
  changed_.notify_all();
}

Result<void> RunTrace::take(const std::string& packets) {
  {
    MutexLock lock(mutex_);
    has_begun_ = true;
    changed_.notify_all();
  }
  return file_->append(packets);
}

void RunTrace::begins(const char* name) {
  own_.begin(kProgramRow, monotonic_now(), name);
}

void RunTrace::ends() {
  own_.end(kProgramRow, monotonic_now());
  if (own_.bytes() < kOwnBytes || own_failed_) return;
  if (Result<void> written = file_->append(own_.take()); !written) own_failed_ = std::move(written).error();
}

Result<void> RunTrace::finish() {
  {
    const auto until = std::chrono::steady_clock::now() + kEndPatience;
    MutexLock lock(mutex_);
    while (!has_ended_ && changed_.wait_until(mutex_, until)) {
    }
  }
  unwanted_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
  if (!own_failed_) {
    if (Result<void> written = file_->append(own_.take()); !written) own_failed_ = std::move(written).error();
  }
  MutexLock lock(mutex_);
  if (failed_) return *failed_;
  if (own_failed_) return *own_failed_;
  return {};
}

}  // namespace millrace::cli
