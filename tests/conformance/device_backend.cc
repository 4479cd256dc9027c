#include "tests/conformance/device_backend.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace millrace {

BackendInfo DeviceBackend::info() const {
  return {.name = "device",
          .device = "made-up device with memory",
          .lanes = 1,
          .formats = {ImageFormat::kJpeg, ImageFormat::kPng, ImageFormat::kWebp},
          .memories = {MadeUpDevice::kMemory}};
}

bool DeviceBackend::try_submit(DecodeJob&& job) {
  if (closed_ || in_it_ == queue_depth().jobs) return false;
  ++in_it_;
  ++undone_;
  struct Running {
    DecodeJob job;
    std::vector<SampleOutcome> outcomes;
  };
  const auto running = std::make_shared<Running>(Running{std::move(job), {}});  // shared by the work and its end
  device_.enqueue(
      [this, running](MadeUpDevice::Engine& engine) {
        for (SampleTask& task : running->job.tasks) running->outcomes.push_back(make(running->job, task, engine));
      },
      [this, running](MadeUpDevice::End end) {
        // What it made is lost with it, too.
        if (end == MadeUpDevice::End::kLost || device_.lost()) {
          running->outcomes.clear();
          for (const SampleTask& task : running->job.tasks)
            running->outcomes.push_back({.index = task.index, .error = Error{Code::kUnavailable, "lost"}});
        }
        --in_it_;  // before done(): who is told so may submit the next at once
        running->job.done(std::move(running->job.tasks), std::move(running->outcomes));
        --undone_;
        undone_.notify_all();
      });
  return true;
}

void DeviceBackend::shutdown() {
  closed_ = true;
  device_.let_go();  // or a test that fails while it is held would wait here for ever
  for (std::uint32_t left = undone_; left > 0; left = undone_) undone_.wait(left);
  device_.listen(nullptr);
}

SampleOutcome DeviceBackend::make(const DecodeJob& job, SampleTask& task, MadeUpDevice::Engine& engine) {
  if (closed_ || (job.stop && job.stop->stopped()))
    return {.index = task.index, .error = Error{Code::kCancelled, "stopped before it began"}};
  if (task.out.host != nullptr) return make_image(task, *job.recipe, {}, workspace_, job.fidelity);
  std::vector<std::byte> made(task.out.bytes.count);
  const Destination there = std::exchange(task.out, in_host_memory(made));
  SampleOutcome outcome = make_image(task, *job.recipe, {}, workspace_, job.fidelity);
  task.out = there;
  engine.upload(there.offset, made);
  return outcome;
}

}  // namespace millrace
