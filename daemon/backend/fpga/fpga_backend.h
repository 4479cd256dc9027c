// FPGA cards: "fpga:0", "fpga:1", ... Each belongs to a process of its own, millrace-fpga, which alone has XRT in it; lanes
// here hand it batches (fpga_wire.h). When that process or its card fails, what it had goes to other backends and it is
// started anew; the daemon and its sessions go on.
//
// Thread-safe. `done` is called on lanes; shutdown() must not be called from there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/backend/backend_row.h"
#include "daemon/backend/device_host/lane_threads.h"
#include "daemon/backend/fpga/card_figures.h"
#include "daemon/backend/fpga/fpga_lane.h"
#include "daemon/backend/fpga/fpga_settings.h"
#include "daemon/backend/fpga/fpga_worker.h"
#include "daemon/backend/fpga/image_choice.h"

namespace millrace {

// The row's: backends.fpga.
bool wants_fpga(const Settings& settings);
HostMemory fpga_host_memory(const Settings& settings);
// kInvalid: a card that is named and not there; with backends.fpga = "yes" none at all.
Result<std::vector<std::unique_ptr<Backend>>> make_fpga_backends(const Settings& settings,
                                                                 const BackendServices& services);

class FpgaBackend final : public Backend {
 public:
  // `number`: of its name. REQUIRES: the card has an image. kExhausted: there are no descriptors.
  static Result<std::unique_ptr<FpgaBackend>> begin(const Card& card, std::uint32_t number,
                                                    const FpgaSettings& settings, const BackendServices& services);
  // Once, before anything else. Errors: HostedDevice::start()'s.
  Result<void> wait_until_begun() { return device_.wait_until_begun(); }
  ~FpgaBackend() override { shutdown(); }

  BackendInfo info() const override { return info_; }
  QueueDepth queue_depth() const override {
    return {.jobs = 2 * info_.lanes, .at_once = info_.lanes, .few = 16, .most = 64};
  }
  Result<void> can_make(const SampleFacts& facts, const Recipe& recipe) const override;
  void listen(HealthListener listener) override { device_.health().listen(std::move(listener)); }
  [[nodiscard]] bool try_submit(DecodeJob&& job) override { return lanes_.try_submit(std::move(job)); }
  void shutdown() override;

 private:
  FpgaBackend(const Card& card, std::uint32_t number, const FpgaSettings& settings, const BackendServices& services);

  const BackendInfo info_;
  const FpgaStaging staging_;   // of a lane
  mutable ImageChoice choice_;  // thread-safe: a caller that asks whether a sample can be made has wanted it
  CardFigures figures_;
  FpgaDevice device_;
  const FpgaLaneParts parts_;
  device_host::LaneThreads lanes_;
};

}  // namespace millrace
