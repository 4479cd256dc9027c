// The backend of every host: N lanes, each a thread with its own workspace, which take jobs from one bounded queue. A
// job is one lane's; two jobs a lane are enough to keep all busy. Pixels do not depend on the number of lanes, on their
// order, or on what they made before.
//
// Fidelity `fast` has the bound that README.md states, and does not depend on those either.
//
// Thread-safe. `done` is called on lanes; shutdown() must not be called from there.
#pragma once

#include <cstdint>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/backend/backend_row.h"
#include "daemon/backend/cpu/cpu_settings.h"
#include "daemon/backend/cpu/isolation/decoder_children.h"
#include "daemon/backend/cpu/lanes/pinning.h"
#include "daemon/backend/cpu/making/cached_maker.h"
#include "daemon/backend/job_queue.h"
#include "daemon/observe/cpu_time.h"

namespace millrace {

// The row's: on unless backends.cpu is false, and always one, "cpu".
bool wants_cpu(const Settings& settings);
Result<std::vector<std::unique_ptr<Backend>>> make_cpu_backends(const Settings& settings,
                                                                const BackendServices& services);

// The most processes that the lanes have beside them. kInvalid: as of CpuBackend::create().
Result<std::uint64_t> most_decoders(const CpuSettings& settings);

class CpuBackend final : public Backend {
 public:
  // kInvalid: a core that the lanes cannot be pinned to, more lanes than kMaxLanes, a target that the processor lacks,
  // decoder processes that cannot be had.
  static constexpr std::uint32_t kMaxLanes = 1024;
  static Result<std::unique_ptr<Backend>> create(const CpuSettings& settings, const BackendServices& services = {});
  ~CpuBackend() override { shutdown(); }

  BackendInfo info() const override { return info_; }
  QueueDepth queue_depth() const override {
    return {.jobs = 2 * info_.lanes, .at_once = info_.lanes, .few = 4, .most = 16, .urgent = info_.lanes};
  }
  Result<void> can_make(const SampleFacts& facts, const Recipe& recipe) const override;
  void listen(HealthListener) override {}  // a processor is not lost
  [[nodiscard]] bool try_submit(DecodeJob&& job) override { return queue_.try_push(std::move(job)); }
  void shutdown() override;

 private:
  CpuBackend(BackendInfo info, const CpuVariant& variant, std::optional<DecoderProgram> decoder,
             const BackendServices& services);
  Result<void> start(const std::vector<LanePlace>& places);

  void run_lane();
  // What a lane has beside its maker to tell what its jobs take.
  struct LaneClocks {
    ThreadStopwatch used;
    RunnableTime runnable;
    DecoderChildren* processes = nullptr;  // null: none

    std::chrono::nanoseconds lap_of_processes() {
      return processes == nullptr ? std::chrono::nanoseconds{0} : processes->lap();
    }
  };

  void run(QueuedDecode queued, CachedMaker& maker, LaneClocks& clocks);
  SampleOutcome make(const DecodeJob& job, SampleTask& task, CachedMaker& maker) const;

  const BackendInfo info_;
  const CpuVariant variant_;
  const InForce<Limits> limits_;
  const std::optional<DecoderProgram> decoder_;  // nullopt: the lanes run all decoders
  ImageCache* const cache_;                      // nullptr: none
  Counters* const counters_;                     // nullptr: nothing is counted
  JobQueue queue_;
  std::vector<std::thread> threads_;  // written before create() returns and by the one shutdown()
  std::latch placed_{1};              // a lane touches its memory where it is going to stay
  std::once_flag shut_down_;
};

}  // namespace millrace
