// What `millrace run --trace` records: its session in the daemon, and beside it when the program itself waits for batches
// and when it has one, by the same clock, in one file.
//
//   MILLRACE_TRY(trace, RunTrace::begin(client.socket(), session.id(), path));
//   { const RunTrace::Slice slice(trace.get(), "next"); ... }
//   trace->finish();   // after the session's end, which ends the recording
//
// Thread-bound(its owner).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "client/cli/trace/packet_file.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"
#include "proto/trace/packet_writer.h"

namespace millrace::cli {

class RunTrace {
 public:
  // The daemon records when this returns. Errors: PacketFile::create()'s and TraceCall's.
  static Result<std::unique_ptr<RunTrace>> begin(const std::string& socket, std::uint64_t session,
                                                 const std::string& path);
  ~RunTrace();
  RunTrace(const RunTrace&) = delete;
  RunTrace& operator=(const RunTrace&) = delete;

  // What the program does, for as long as this lives. `trace`: null: nobody records.
  class Slice {
   public:
    Slice(RunTrace* trace, const char* name) : trace_(trace) {
      if (trace_ != nullptr) trace_->begins(name);
    }
    ~Slice() {
      if (trace_ != nullptr) trace_->ends();
    }
    Slice(const Slice&) = delete;
    Slice& operator=(const Slice&) = delete;

   private:
    RunTrace* const trace_;
  };

  // The first error that there was: the file is short of what came after it.
  Result<void> finish() MILLRACE_EXCLUDES(mutex_);
  const PacketFile& file() const { return *file_; }

 private:
  explicit RunTrace(std::unique_ptr<PacketFile> file);
  void begins(const char* name);
  void ends();
  void record(const std::string& socket, std::uint64_t session) MILLRACE_EXCLUDES(mutex_);
  Result<void> take(const std::string& packets) MILLRACE_EXCLUDES(mutex_);

  const std::unique_ptr<PacketFile> file_;
  PacketWriter own_;
  std::optional<Error> own_failed_;
  std::thread thread_;                 // reads what the daemon sends
  std::atomic<bool> unwanted_{false};  // Writer: finish(). Reader: that thread
  Mutex mutex_;
  Condition changed_;
  bool has_begun_ MILLRACE_GUARDED_BY(mutex_) = false, has_ended_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::optional<Error> failed_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::cli
