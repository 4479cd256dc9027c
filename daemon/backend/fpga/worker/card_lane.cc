#include "daemon/backend/fpga/worker/card_lane.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "daemon/backend/fpga/worker/xrt_calls.h"
#include "hls/table/kernel_table.h"

namespace millrace::fpga {
namespace {

constexpr std::size_t kCompletionBytes = kMostFpgaImages * sizeof(hls::Completion);

Error broken(const std::string& what) {
  return Error{Code::kUnavailable, what};
}

}  // namespace

CardLane::OnCard::OnCard(xrt::device& device, xrt::kernel& unit, std::byte* staging, const FpgaStaging& layout)
    : commands(device, kCommandBytes, unit.group_id(hls::kCommands)),
      encoded(device, staging + FpgaStaging::encoded_at(), layout.encoded_bytes, unit.group_id(hls::kEncoded)),
      tensors(device, staging + layout.tensors_at(), layout.tensor_bytes, unit.group_id(hls::kTensors)),
      completions(device, kCompletionBytes, unit.group_id(hls::kCompletions)),
      commands_at(commands.map<std::byte*>()),
      completions_at(completions.map<std::byte*>()),
      run(unit) {
  run.set_arg(hls::kCommands, commands);
  run.set_arg(hls::kEncoded, encoded);
  run.set_arg(hls::kTensors, tensors);
  run.set_arg(hls::kCompletions, completions);
  run.set_arg(hls::kCompletionsBytes, static_cast<std::uint32_t>(kCompletionBytes));
}

Result<void> CardLane::attach(XrtCard& card) {
  return xrt_call("taking the card's buffers", [&] {
    on_card_ = std::make_unique<OnCard>(card.device(), card.kernel(number_), staging_, layout_);
    on_card_->wake = wake_;
    // Of errors, too.
    on_card_->run.add_callback(ERT_CMD_STATE_COMPLETED, on_end, on_card_.get());
  });
}

void CardLane::on_end(const void*, ert_cmd_state, void* on_card) {
  OnCard& self = *static_cast<OnCard*>(on_card);
  self.ended.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  while (write(self.wake, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

Result<bool> CardLane::start(const FpgaBatch& batch_untrusted) {
  batch_ = batch_untrusted;
  const std::span<const std::byte> encoded(staging_ + FpgaStaging::encoded_at(), layout_.encoded_bytes);
  MILLRACE_TRY(const BatchPlan plan,
               planner_.plan(batch_, layout_, encoded, orders(), {on_card_->commands_at, kCommandBytes}));
  if (plan.images == 0) return false;
  MILLRACE_TRY_VOID(send(batch_, plan));
  return true;
}

Result<void> CardLane::send(const FpgaBatch& batch, const BatchPlan& plan) {
  phase_ = static_cast<std::uint8_t>(phase_ % 255 + 1);
  return xrt_call("starting a batch on the card", [&] {
    OnCard& card = *on_card_;
    card.commands.sync(XCL_BO_SYNC_BO_TO_DEVICE, plan.command_bytes, 0);
    card.encoded.sync(XCL_BO_SYNC_BO_TO_DEVICE, batch.encoded_bytes, 0);
    card.run.set_arg(hls::kCommandsBytes, static_cast<std::uint32_t>(plan.command_bytes));
    card.run.set_arg(hls::kEncodedBytes, static_cast<std::uint32_t>(batch.encoded_bytes));
    card.run.set_arg(hls::kTensorsBytes, static_cast<std::uint32_t>(batch.tensor_bytes));
    card.run.set_arg(hls::kPhase, static_cast<std::uint32_t>(phase_));
    card.ended.store(false, std::memory_order_relaxed);
    started_ = Clock::now();
    card.run.start();
  });
}

Result<FpgaDone> CardLane::finish() {
  on_card_->ended.store(false, std::memory_order_relaxed);
  FpgaDone done;
  done.busy_microseconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - started_).count());
  const Result<ert_cmd_state> state = xrt_call("asking for the batch", [&] { return on_card_->run.state(); });
  MILLRACE_TRY_VOID(state);
  if (*state != ERT_CMD_STATE_COMPLETED)
    return broken(std::string("the card's kernel ") +
                  (*state == ERT_CMD_STATE_NORESPONSE ? "does not respond any more" : "ended with an error") +
                  " (XRT's state " + std::to_string(static_cast<int>(*state)) + ")");
  const std::size_t completion_bytes = planner_.planned() * sizeof(hls::Completion);
  MILLRACE_TRY_VOID(xrt_call("taking tensors from the card", [&] {
    on_card_->completions.sync(XCL_BO_SYNC_BO_FROM_DEVICE, completion_bytes, 0);
    on_card_->tensors.sync(XCL_BO_SYNC_BO_FROM_DEVICE, batch_.tensor_bytes, 0);
  }));
  MILLRACE_TRY_VOID(planner_.judge({on_card_->completions_at, completion_bytes}, phase_, orders()));
  done.moved_bytes = batch_.encoded_bytes + batch_.tensor_bytes + completion_bytes;
  return done;
}

void CardLane::abandon() {
  if (!on_card_) return;
  const Result<void> aborted = xrt_call("aborting a batch", [&] { on_card_->run.abort(); });
  static_cast<void>(aborted);  // the process ends in any case
}

}  // namespace millrace::fpga
