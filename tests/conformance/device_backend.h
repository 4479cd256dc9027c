// The backend of the made-up device: makes images there, one job after the other, and writes them where they go: into
// the device's memory itself, or down to the host. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "daemon/backend/backend.h"
#include "daemon/backend/cpu/making/image_maker.h"
#include "tests/conformance/made_up_device.h"

namespace millrace {

class DeviceBackend final : public Backend {
 public:
  explicit DeviceBackend(MadeUpDevice& device) : device_(device) {}  // it outlives this
  ~DeviceBackend() override { shutdown(); }

  BackendInfo info() const override;
  QueueDepth queue_depth() const override { return {.jobs = 4, .at_once = 1, .few = 4, .most = 16}; }
  Result<void> can_make(const SampleFacts&, const Recipe&) const override { return {}; }
  void listen(HealthListener listener) override { device_.listen(std::move(listener)); }
  [[nodiscard]] bool try_submit(DecodeJob&& job) override;
  void shutdown() override;

 private:
  SampleOutcome make(const DecodeJob& job, SampleTask& task, MadeUpDevice::Engine& engine);

  MadeUpDevice& device_;
  ImageWorkspace workspace_;  // the device's thread's
  std::atomic<std::uint32_t> in_it_{0}, undone_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace millrace
