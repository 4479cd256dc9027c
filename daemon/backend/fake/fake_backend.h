// A device made up for tests: asynchronous, late, out of order, faulty and lossy, as its options say, so that what is
// built on Backend suits a device as well as a CPU. Its pixels are real: the same arithmetic as the CPU backend's.
//
//   queued ──▶ made (all that is queued, in order) ──▶ due ──▶ done, the youngest of those that are due first
//   device lost: whatever is queued or made comes back as kUnavailable, and so does every later job until it is back
//
// Thread-safe. One thread is the device; `done` is called on it; shutdown() must not be called from there.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/backend/backend_row.h"
#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/backend/fake/fake_options.h"
#include "daemon/backend/fake/fake_settings.h"
#include "proto/base/mutex.h"

namespace millrace {

// The row's: there is one, "fake", where backends.fake says how it behaves. kInvalid: that cannot be understood.
bool wants_fake(const Settings& settings);
Result<std::vector<std::unique_ptr<Backend>>> make_fake_backends(const Settings& settings,
                                                                 const BackendServices& services);

class FakeBackend final : public Backend {
 public:
  static std::unique_ptr<Backend> create(const FakeOptions& options, InForce<Limits> limits = {});
  ~FakeBackend() override { shutdown(); }

  BackendInfo info() const override;
  QueueDepth queue_depth() const override { return {.jobs = options_.depth, .few = 4, .most = 16}; }
  Result<void> can_make(const SampleFacts& facts, const Recipe& recipe) const override;
  void listen(HealthListener listener) override { health_.listen(std::move(listener)); }
  [[nodiscard]] bool try_submit(DecodeJob&& job) override MILLRACE_EXCLUDES(mutex_);
  void shutdown() override MILLRACE_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;

  struct Queued {
    DecodeJob job;
    Clock::time_point since;
    Clock::time_point due;
  };
  struct Made {
    DecodeJob job;
    std::vector<SampleOutcome> outcomes;
    Clock::time_point due;
  };
  struct Work {
    std::deque<Queued> decodes;
    bool closed = false;
  };

  FakeBackend(const FakeOptions& options, InForce<Limits> limits);

  void run_device();
  Work take_work() MILLRACE_EXCLUDES(mutex_);
  Made make(Queued queued, ImageWorkspace& workspace);
  std::optional<Error> make_sample(const DecodeJob& job, const SampleTask& task, ImageWorkspace& workspace,
                                   SampleOutcome& outcome);
  void recover();
  void complete_due(Clock::time_point now);
  void complete(Made made) MILLRACE_EXCLUDES(mutex_);
  bool closed() const MILLRACE_EXCLUDES(mutex_);

  const FakeOptions options_;
  const InForce<Limits> limits_;
  HealthNews health_;  // the device's thread brings them
  mutable Mutex mutex_;
  Condition changed_;
  Work work_ MILLRACE_GUARDED_BY(mutex_);
  std::uint64_t accepted_ MILLRACE_GUARDED_BY(mutex_) = 0;  // decode jobs
  std::uint32_t in_it_ MILLRACE_GUARDED_BY(mutex_) = 0;     // decode jobs
  std::vector<Made> made_;                                  // the device's thread's, as is the next
  std::uint64_t samples_ = 0;                               // begun
  std::uint64_t refused_ = 0;                               // since it was lost
  std::thread device_;
  std::once_flag shut_down_;
};

}  // namespace millrace
