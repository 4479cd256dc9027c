// A lane's batches on the card: its buffers, which are made once for what the card is programmed with, and the one batch
// that is under way.
//
//   attach() ──▶ plan and start() ──▶ (the card works; has_ended()) ──▶ finish() ──▶ start() ... ──▶ detach()
//
// Files and tensors are not copied here: the staging that the daemon has mapped as well is the host's side of the buffers.
// Thread-bound(the reader's), but for the callback, which a thread of XRT's calls.
#pragma once

#include <xrt/xrt_bo.h>
#include <xrt/xrt_kernel.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "daemon/backend/fpga/fpga_wire.h"
#include "daemon/backend/fpga/worker/batch_plan.h"
#include "daemon/backend/fpga/worker/xrt_card.h"
#include "proto/base/result.h"

namespace millrace::fpga {

class CardLane {
 public:
  using Clock = std::chrono::steady_clock;

  // `staging`: of layout.size() bytes, for as long as the lane. `wake`: an eventfd, written when a batch has ended.
  CardLane(std::uint32_t number, std::byte* staging, const FpgaStaging& layout, int wake)
      : number_(number), staging_(staging), layout_(layout), wake_(wake) {}
  CardLane(const CardLane&) = delete;
  CardLane& operator=(const CardLane&) = delete;
  ~CardLane() { detach(); }

  // kUnavailable: the card's memory, or XRT, does not give the buffers.
  Result<void> attach(XrtCard& card);
  // REQUIRES: nothing is under way.
  void detach() { on_card_.reset(); }

  // Verdicts of images that the card cannot have are in the orders at once; false: there are no others, and nothing was
  // started. kUnsupported: the batch makes no sense. kUnavailable: the card is lost. REQUIRES: attach() was content,
  // nothing is under way.
  Result<bool> start(const FpgaBatch& batch_untrusted);
  bool has_ended() const { return on_card_ && on_card_->ended.load(std::memory_order_acquire); }
  // The batch's verdicts are in the orders, its tensors in the staging. kUnavailable: the card failed, or it says what
  // it cannot say. REQUIRES: has_ended().
  Result<FpgaDone> finish();
  // Takes the batch off the card, if it lets itself.
  void abandon();

 private:
  struct OnCard {
    OnCard(xrt::device& device, xrt::kernel& unit, std::byte* staging, const FpgaStaging& layout);

    xrt::bo commands, encoded, tensors, completions;
    std::byte* commands_at;
    std::byte* completions_at;
    xrt::run run;
    std::atomic<bool> ended = false;  // writer: XRT's thread; publishes that the run is done
    int wake = -1;
  };
  static void on_end(const void* key, ert_cmd_state state, void* on_card);

  Result<void> send(const FpgaBatch& batch, const BatchPlan& plan);
  std::span<FpgaOrder> orders() const { return {reinterpret_cast<FpgaOrder*>(staging_), kMostFpgaImages}; }

  const std::uint32_t number_;
  std::byte* const staging_;
  const FpgaStaging layout_;
  const int wake_;
  BatchPlanner planner_;
  std::unique_ptr<OnCard> on_card_;  // a fixed place: the callback has its address
  FpgaBatch batch_;                  // under way
  Clock::time_point started_;
  std::uint8_t phase_ = 0;
};

}  // namespace millrace::fpga
