#include "daemon/backend/cuda/cuda_worker.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

using device_host::Channel;
using device_host::Clock;
using device_host::Heard;
using device_host::Staging;

constexpr std::chrono::seconds kPatienceWithList{20};
constexpr char kProgram[] = "millrace-cuda";
static_assert(cuda_lane_staging(kMostCudaLanes - 1) < device_host::kAbove);

Error other_version() {
  return {Code::kUnsupported, "millrace-cuda is of another version than this daemon: restart the daemon"};
}

Gpu gpu_of(const CudaReady& ready) {
  Gpu gpu{.ordinal = ready.ordinal,
          .name = device_host::text_of(ready.name),
          .memory = {ready.memory_bytes},
          .major = ready.major,
          .minor = ready.minor,
          .multiprocessors = ready.multiprocessors,
          .driver_version = ready.driver_version};
  std::copy(std::begin(ready.uuid), std::end(ready.uuid), gpu.uuid.begin());
  return gpu;
}

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
  if (done.code != 0) return device_host::error_of(done.code, done.text, kProgram);
  return descriptor;
}

// What it says until the list ends.
Result<std::vector<Gpu>> hear_gpus(int control) {
  std::vector<Gpu> gpus;
  for (;;) {
    CudaReady ready;
    const Heard heard = device_host::receive(control, ready, Clock::now() + kPatienceWithList);
    if (heard == Heard::kLate)
      return Error{Code::kUnsupported, "the driver does not say within 20 seconds which GPUs there are"};
    if (heard == Heard::kEnd)
      return Error{Code::kUnsupported, "millrace-cuda ended before it had said which GPUs there are"};
    if (ready.code == kCudaListEnds) return gpus;
    if (ready.version != kCudaWireVersion) return other_version();
    if (ready.code != 0) return device_host::error_of(ready.code, ready.text, kProgram);
    gpus.push_back(gpu_of(ready));
  }
}

}  // namespace

std::string cuda_program(const std::string& path) {
  return device_host::find_program(path, kProgram);
}

Result<std::vector<Gpu>> list_gpus(const std::string& program) {
  MILLRACE_TRY(Channel channel, device_host::make_channel(kProgram));
  const device_host::Handed control[] = {{channel.theirs.get(), kCudaControl}};
  MILLRACE_TRY(const pid_t pid, device_host::start_process(program, control));
  channel.theirs.reset();
  const bool sent = device_host::send_to(channel.ours.get(), CudaHello{.work = CudaWork::kList});
  Result<std::vector<Gpu>> gpus =
      sent ? hear_gpus(channel.ours.get()) : Error{Code::kInternal, program + " ended as it began"};
  device_host::reap(pid);
  return gpus;
}

Result<void> CudaLaneChannel::ask(CudaBatch& batch, std::chrono::milliseconds patience) {
  batch.number = ++asked_;
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
  MILLRACE_TRY(Channel control, device_host::make_channel(kProgram));
  std::vector<device_host::Handed> handed{{control.theirs.get(), kCudaControl}};
  std::vector<UniqueFd> theirs;
  MILLRACE_TRY(Channel memory, device_host::make_channel(kProgram));
  MILLRACE_TRY(Staging moved, Staging::create(kProgram, kCudaMemoryStagingBytes));
  handed.push_back({memory.theirs.get(), kCudaMemorySocket});
  handed.push_back({theirs.emplace_back(moved.take_descriptor()).get(), kCudaMemoryStaging});
  std::vector<CudaLaneChannel> lanes;
  for (std::uint32_t i = 0; i < order.lanes; ++i) {
    MILLRACE_TRY(Channel channel, device_host::make_channel(kProgram));
    MILLRACE_TRY(Staging staging, Staging::create(kProgram, Bytes{layout.size()}));
    handed.push_back({channel.theirs.get(), cuda_lane_socket(i)});
    handed.push_back({theirs.emplace_back(staging.take_descriptor()).get(), cuda_lane_staging(i)});
    lanes.emplace_back(std::move(channel.ours), std::move(staging), layout);
    theirs.push_back(std::move(channel.theirs));
  }
  MILLRACE_TRY(const pid_t pid, device_host::start_process(program, handed));
  return std::shared_ptr<CudaWorker>(new CudaWorker(std::move(control.ours),
                                                    CudaMemoryChannel(std::move(memory.ours), std::move(moved)),
                                                    std::move(lanes), pid, gpu, order));
}

CudaWorker::CudaWorker(UniqueFd control, CudaMemoryChannel memory, std::vector<CudaLaneChannel> lanes, pid_t pid,
                       const CudaUuid& gpu, const CudaWorkerOrder& order)
    : HostProcess(std::move(control), pid),
      memory_(std::move(memory)),
      lanes_(std::move(lanes)),
      gpu_(gpu),
      order_(order) {}

Result<void> CudaWorker::greet(std::chrono::milliseconds patience) {
  CudaHello hello{.work = CudaWork::kServe,
                  .lanes = order_.lanes,
                  .encoded_bytes = order_.encoded.count,
                  .tensor_bytes = order_.tensors.count,
                  .device_bytes = order_.device.count};
  std::copy(gpu_.begin(), gpu_.end(), std::begin(hello.uuid));
  CudaReady ready;
  const Heard heard = device_host::send_to(control(), hello)
                          ? device_host::receive(control(), ready, Clock::now() + patience)
                          : Heard::kEnd;
  if (heard == Heard::kLate)
    return Error{Code::kUnavailable,
                 "millrace-cuda does not come up within " + std::to_string(patience.count() / 1000) + " seconds"};
  if (heard == Heard::kEnd) return Error{Code::kUnavailable, "millrace-cuda ended as it began"};
  if (ready.version != kCudaWireVersion) return other_version();
  if (ready.code != 0) return device_host::error_of(ready.code, ready.text, kProgram);
  return {};
}

}  // namespace millrace
