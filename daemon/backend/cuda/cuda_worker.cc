#include "daemon/backend/cuda/cuda_worker.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

using device_host::Channel;
using device_host::Clock;
using device_host::Heard;
using device_host::Staging;

static_assert(cuda_lane_staging(kMostCudaLanes) <= device_host::kAbove);

// Sends what has a number, and waits for the answer to that number.
template <class Order>
Result<UniqueFd> ask_process(int socket, const Order& order, std::chrono::milliseconds patience) {
  if (!device_host::send_to(socket, order)) return Error{Code::kUnavailable, "the process that has the GPU is gone"};
  CudaDone done;
  UniqueFd descriptor;
  const Heard heard = device_host::receive(socket, done, Clock::now() + patience, &descriptor);
  if (heard == Heard::kLate)
    return Error{Code::kUnavailable, "the GPU does not answer within " + std::to_string(patience.count()) + " ms"};
  if (heard == Heard::kEnd || done.number != order.number)
    return Error{Code::kUnavailable, "the process that has the GPU ended"};
  if (done.code != 0) return device_host::error_of(done.code, done.text, kCudaProgram);
  return descriptor;
}

}  // namespace

Result<void> CudaLaneChannel::ask(CudaBatch& batch, std::chrono::milliseconds patience) {
  batch.number = ++asked_;
  batch.whole = whole_ ? 1 : 0;
  MILLRACE_TRY(const UniqueFd none, ask_process(socket_.get(), batch, patience));
  return {};
}

Result<UniqueFd> CudaMemoryChannel::ask(CudaMemoryOrder order, std::chrono::milliseconds patience) {
  order.number = ++asked_;
  Result<UniqueFd> answer = ask_process(socket_.get(), order, patience);
  if (!answer && answer.error().code == Code::kUnavailable) why_lost_ = answer.error().message;
  return answer;
}

Result<std::shared_ptr<CudaWorker>> CudaWorker::start(const std::string& program, const CudaUuid& gpu,
                                                      const CudaWorkerOrder& order) {
  const CudaStaging layout{order.encoded.count, order.tensors.count};
  MILLRACE_TRY(Channel control, device_host::make_channel(kCudaProgram));
  std::vector<device_host::Handed> handed{{control.theirs.get(), kCudaControl}};
  std::vector<UniqueFd> theirs;
  MILLRACE_TRY(Channel memory, device_host::make_channel(kCudaProgram));
  MILLRACE_TRY(Staging moved, Staging::create(kCudaProgram, kCudaMemoryStagingBytes));
  handed.push_back({memory.theirs.get(), kCudaMemorySocket});
  handed.push_back({theirs.emplace_back(moved.take_descriptor()).get(), kCudaMemoryStaging});
  std::vector<CudaLaneChannel> halves;
  for (std::uint32_t i = 0; i < order.lanes; ++i) {
    MILLRACE_TRY(Staging staging, Staging::create(kCudaProgram, Bytes{layout.size()}));
    handed.push_back({theirs.emplace_back(staging.take_descriptor()).get(), cuda_lane_staging(i)});
    const auto shared = std::make_shared<const Staging>(std::move(staging));
    for (std::uint32_t half = 0; half < kCudaHalves; ++half) {
      MILLRACE_TRY(Channel channel, device_host::make_channel(kCudaProgram));
      handed.push_back({channel.theirs.get(), cuda_lane_socket(i, half)});
      halves.emplace_back(std::move(channel.ours), shared, layout, half);
      theirs.push_back(std::move(channel.theirs));
    }
  }
  MILLRACE_TRY(const pid_t pid, device_host::start_process(program, handed));
  return std::shared_ptr<CudaWorker>(new CudaWorker(std::move(control.ours),
                                                    CudaMemoryChannel(std::move(memory.ours), std::move(moved)),
                                                    std::move(halves), pid, gpu, order));
}

CudaWorker::CudaWorker(UniqueFd control, CudaMemoryChannel memory, std::vector<CudaLaneChannel> halves, pid_t pid,
                       const CudaUuid& gpu, const CudaWorkerOrder& order)
    : HostProcess(std::move(control), pid),
      memory_(std::move(memory)),
      halves_(std::move(halves)),
      uuid_(gpu),
      order_(order) {}

Result<void> CudaWorker::greet(std::chrono::milliseconds patience) {
  CudaHello hello{.work = CudaWork::kServe,
                  .lanes = order_.lanes,
                  .encoded_bytes = order_.encoded.count,
                  .tensor_bytes = order_.tensors.count,
                  .device_bytes = order_.device.count};
  std::copy(uuid_.begin(), uuid_.end(), std::begin(hello.uuid));
  CudaReady ready;
  const Heard heard = device_host::send_to(control(), hello)
                          ? device_host::receive(control(), ready, Clock::now() + patience)
                          : Heard::kEnd;
  if (heard == Heard::kLate)
    return Error{Code::kUnavailable,
                 "millrace-cuda does not come up within " + std::to_string(patience.count() / 1000) + " seconds"};
  if (heard == Heard::kEnd) return Error{Code::kUnavailable, "millrace-cuda ended as it began"};
  MILLRACE_TRY(gpu_, gpu_of(ready));
  if (gpu_.uuid != uuid_) return Error{Code::kUnavailable, "millrace-cuda serves another GPU than it was told to"};
  return {};
}

}  // namespace millrace
