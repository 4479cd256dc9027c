// What a TensorView stands for: a lease on one slot. Thread-safe for reading.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client/src/holding.h"
#include "client/src/wire/wire.h"
#include "millrace/tensor.h"
#include "millrace/v1/batch.pb.h"

namespace millrace {
inline namespace client {

struct TensorView::State {
  std::shared_ptr<Holding> holding;  // shared: a view outlives its session
  std::weak_ptr<Wire> wire;          // for the release; gone once the session has ended
  std::uint32_t slot = 0;
  std::uint64_t generation = 0;
  std::span<const std::byte> tensor;
  DeviceBytes on_device;               // instead of `tensor`
  std::vector<void*> streams;          // that use it there
  std::span<const std::byte> records;  // samples x SampleRecord
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> strides;
  std::vector<ViewTensor> views;
  DType dtype = DType::kUint8;
  std::chrono::steady_clock::time_point sealed_at;
  std::optional<std::chrono::nanoseconds>
      waited;  // the program, for it; nothing: nobody took it, or the daemon is older

  ~State();  // gives the slot back
};

// The lease that `handle` names, checked: kPrecondition if the slot holds another batch by now, kInternal if the handle
// contradicts itself. Either way the daemon is told that the handle is not needed any more.
Result<TensorView> view_of(const v1::TensorHandle& handle, const std::shared_ptr<Holding>& holding,
                           const std::weak_ptr<Wire>& wire);

}  // namespace client
}  // namespace millrace
