// The threads of a backend whose device belongs to another process, beside a device that answers late or never.
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "daemon/backend/device_host/lane_threads.h"
#include "daemon/backend/words.h"

namespace millrace {
namespace {

// Answers kUnavailable once it is stopped, as a lane does whose process ended.
class SilentDevice {
 public:
  std::vector<SampleOutcome> ask(const DecodeJob& job) {
    std::unique_lock lock(mutex_);
    is_asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_stopped_; });
    std::vector<SampleOutcome> outcomes(job.tasks.size());
    for (SampleOutcome& outcome : outcomes) outcome.error = Error{Code::kUnavailable, "the process ended"};
    return outcomes;
  }
  void wait_until_asked() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_asked_; });
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_asked_ = false, is_stopped_ = false;
};

}  // namespace

TEST_CASE("what a device has when the backend is shut down comes back as cancelled", "[backend][device_host]") {
  SilentDevice device;
  std::vector<SampleOutcome> told;
  const device_host::HostedDevice no_process({});
  device_host::LaneThreads lanes(
      no_process, 1, 2, "mr-test-", Limits{},
      [&](std::uint32_t, const DecodeJob& job, const SampleLimits&, const auto&) { return device.ask(job); });
  DecodeJob job{.tasks = std::vector<SampleTask>(3), .recipe = nullptr, .done = [&](auto, auto outcomes) {
                  told = std::move(outcomes);
                }};
  REQUIRE(lanes.try_submit(std::move(job)));
  device.wait_until_asked();

  lanes.shutdown([&] { device.stop(); });

  REQUIRE(told.size() == 3);
  for (const SampleOutcome& outcome : told) REQUIRE(outcome.error->code == Code::kCancelled);
}

TEST_CASE("a device that is lost while the backend runs is told as unavailable", "[backend][device_host]") {
  std::vector<SampleOutcome> told;
  const device_host::HostedDevice no_process({});
  device_host::LaneThreads lanes(
      no_process, 1, 2, "mr-test-", Limits{}, [](std::uint32_t, const DecodeJob&, const SampleLimits&, const auto&) {
        return std::vector<SampleOutcome>{{.error = Error{Code::kUnavailable, "it is lost"}}};
      });
  std::mutex mutex;
  std::condition_variable changed;
  DecodeJob job{.tasks = std::vector<SampleTask>(1), .recipe = nullptr, .done = [&](auto, auto outcomes) {
                  const std::lock_guard lock(mutex);
                  told = std::move(outcomes);
                  changed.notify_all();
                }};
  REQUIRE(lanes.try_submit(std::move(job)));
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !told.empty(); });
  }

  lanes.shutdown([] {});

  REQUIRE(told[0].error->code == Code::kUnavailable);
}

}  // namespace millrace
