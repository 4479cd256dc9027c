#include "daemon/backend/device_host/lane_threads.h"

#include <pthread.h>

#include <chrono>
#include <optional>
#include <utility>

#include "daemon/backend/words.h"
#include "daemon/observe/trace/points.h"

namespace millrace::device_host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLanesPatienceAtEnd{5};

}  // namespace

LaneThreads::LaneThreads(const HostedDevice& device, std::uint32_t lanes, std::uint32_t depth, const std::string& name,
                         InForce<Limits> limits, WorkOff work_off)
    : limits_(std::move(limits)), work_off_(std::move(work_off)), use_(device), queue_(depth), running_(lanes) {
  for (std::uint32_t i = 0; i < lanes; ++i) {
    std::thread& lane = threads_.emplace_back([this, i] { run(i); });
    pthread_setname_np(lane.native_handle(), (name + std::to_string(i)).c_str());
  }
}

void LaneThreads::shutdown(const std::function<void()>& stop_device) {
  std::call_once(shut_down_, [&] {
    queue_.close();
    {
      const Clock::time_point until = Clock::now() + kLanesPatienceAtEnd;
      MutexLock lock(mutex_);
      while (running_ > 0 && ended_.wait_until(mutex_, until)) {
      }
    }
    device_is_stopped_ = true;
    stop_device();
    for (std::thread& thread : threads_) thread.join();
  });
}

void LaneThreads::run(std::uint32_t lane) {
  while (std::optional<QueuedDecode> next = queue_.pop()) {
    DecodeJob job = std::move(next->job);
    const auto waited = Clock::now() - next->since;
    use_.begins();
    auto recorded = std::make_optional<trace::Work>(
        trace::What::kJobBegins, trace::Subject{job.owner.user, job.owner.session}, job.tasks.size());
    std::vector<SampleOutcome> outcomes = work_off_(
        lane, job, limits_.now().sample, [&] { return queue_.closed() || (job.stop && job.stop->stopped()); });
    recorded.reset();
    for (SampleOutcome& outcome : outcomes) {
      outcome.queued = waited;
      const bool ended_with_device = device_is_stopped_ && outcome.error && outcome.error->code == Code::kUnavailable;
      if (ended_with_device) outcome.error = cancelled_error();
    }
    const std::chrono::nanoseconds process_cpu = use_.ends();
    if (job.use) job.use->process_cpu = process_cpu;
    queue_.finished();  // before done(): who is told so may submit the next at once
    job.done(std::move(job.tasks), std::move(outcomes));
  }
  {
    MutexLock lock(mutex_);
    --running_;
  }
  ended_.notify_all();
}

}  // namespace millrace::device_host
