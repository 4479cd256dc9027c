// The process that owns a GPU for the daemon, as the daemon has it (cuda_wire.h has what they say). An error of a GPU's
// context is the end of the process that has the context, and of no other: so the daemon has none.
//
//   CudaWorker::start(program, gpu, order) ──▶ greet() ──▶ halves of lanes ask, one thread each ──▶ end(), or it dies
//
// Thread-safe, but for halves of lanes and the memory, which are each Thread-bound(a thread's).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/backend/cuda/cuda_wire.h"
#include "daemon/backend/cuda/gpu_list.h"
#include "daemon/backend/device_host/channel.h"
#include "daemon/backend/device_host/host_process.h"
#include "daemon/backend/device_host/hosted_device.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

struct CudaWorkerOrder {
  std::uint32_t lanes = 2;
  Bytes encoded, tensors;  // of a lane's staging
  Bytes device;            // of the GPU's memory, for each lane
};

// A half of a lane, as the daemon has it: a socket, and the staging that both processes and the other half have mapped.
class CudaLaneChannel {
 public:
  CudaLaneChannel(UniqueFd socket, std::shared_ptr<const device_host::Staging> staging, CudaStaging layout,
                  std::uint32_t half)
      : socket_(std::move(socket)), staging_(std::move(staging)), layout_(layout), half_(half) {}

  // For the next batch: its half of the staging, or all of it. REQUIRES: for all of it, nobody uses the other half.
  void use(bool whole) {
    whole_ = whole;
    part_ = whole ? layout_.whole(half_) : layout_.half(half_);
  }
  // REQUIRES: no batch is asked for.
  CudaBatchRooms rooms() const { return rooms_at(staging_->data() + part_.rooms_at); }
  std::span<std::byte> encoded() const { return {staging_->data() + part_.encoded_at, part_.encoded_bytes}; }
  std::span<const std::byte> tensors() const { return {staging_->data() + part_.tensors_at, part_.tensor_bytes}; }

  // One batch. kExhausted: it is too much at once for the GPU's memory, and nothing was made. kNotFound: the memory that
  // the tensors are to go to is not this process's. kUnavailable: the process
  // is gone, the GPU's context is broken, or there was no answer in `patience`.
  Result<void> ask(CudaBatch& batch, std::chrono::milliseconds patience);

 private:
  UniqueFd socket_;
  std::shared_ptr<const device_host::Staging> staging_;  // shared: with the other half
  CudaStaging layout_;
  std::uint32_t half_;
  CudaPart part_{};
  bool whole_ = false;
  std::uint64_t asked_ = 0;
};

// The memory's part of it: likewise.
class CudaMemoryChannel {
 public:
  CudaMemoryChannel(UniqueFd socket, device_host::Staging staging)
      : socket_(std::move(socket)), staging_(std::move(staging)) {}

  // REQUIRES: nothing is asked for.
  std::span<CudaMove> moves() const { return {reinterpret_cast<CudaMove*>(staging_.data()), kMostCudaMoves}; }
  std::span<std::byte> bytes() const { return {staging_.data() + kCudaMovedAt, kCudaMoving.count}; }

  // One order; what kTake took has a descriptor, else there is none. kExhausted: the GPU has not so much left. kNotFound:
  // this process does not have that memory. kUnsupported: the GPU exports none. kUnavailable: as a lane's.
  Result<UniqueFd> ask(CudaMemoryOrder order, std::chrono::milliseconds patience);
  // Of the last kUnavailable; empty: there was none.
  const std::string& why_lost() const { return why_lost_; }

 private:
  UniqueFd socket_;
  device_host::Staging staging_;
  std::uint64_t asked_ = 0;
  std::string why_lost_;
};

class CudaWorker final : public device_host::HostProcess {
 public:
  // kExhausted, kInternal: there is none. To be called by a thread that lives as long as the process may.
  static Result<std::shared_ptr<CudaWorker>> start(const std::string& program, const CudaUuid& gpu,
                                                   const CudaWorkerOrder& order);

  // A driver that has to compile takes half a minute.
  Result<void> greet(std::chrono::milliseconds patience) override;

  // As the process says; once it is greeted.
  const Gpu& gpu() const { return gpu_; }
  CudaLaneChannel& half(std::uint32_t lane, std::uint32_t half) { return halves_[kCudaHalves * lane + half]; }
  CudaMemoryChannel& memory() { return memory_; }

 private:
  CudaWorker(UniqueFd control, CudaMemoryChannel memory, std::vector<CudaLaneChannel> halves, pid_t pid,
             const CudaUuid& gpu, const CudaWorkerOrder& order);

  CudaMemoryChannel memory_;
  std::vector<CudaLaneChannel> halves_;  // those of a lane one after the other
  const CudaUuid uuid_;
  Gpu gpu_;
  const CudaWorkerOrder order_;
};

using CudaDevice = device_host::Owned<CudaWorker>;

}  // namespace millrace
