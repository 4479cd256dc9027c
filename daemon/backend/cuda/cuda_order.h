// A batch as it is written for the process that owns the GPU (cuda_wire.h): from samples to orders, views, steps with
// their parameters drawn, and files.
//
//   CudaBatchWriter writer(recipe, fidelity, memory, channel.rooms(), channel.encoded());
//   for (const SampleTask& task : tasks) MILLRACE_TRY_VOID(writer.add(task));
//   channel.ask(writer.batch(), patience);
//
// Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/backend/cuda/cuda_wire.h"
#include "daemon/memory/destination.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

// What the GPU makes of such a sample: yes, or kUnsupported and why not. `staging`: of a lane. Thread-safe.
Result<void> cuda_can_make(const SampleFacts& facts, const Recipe& recipe, const CudaStaging& staging);

// Whether it is the CPU's all the same, which alone draws noise for each pixel that is erased. REQUIRES: check_task() was
// content.
bool needs_pixel_noise(const SampleTask& task, const Recipe& recipe);

// Whether a packed form stands in for the file, and what the GPU makes the tensors of: that form, or the file.
bool is_packed(const EncodedImage& image);
ByteView input_of(const EncodedImage& image);
// Of a lane's staging, for a file of so many bytes.
std::uint64_t room_of(std::size_t file_bytes);

// Of one sample, all views together.
std::uint64_t tensor_bytes_of(const SampleTask& task);

bool is_on_device(const Destination& out);
// In which of the sessions' memories the tensors go. 0: the host's.
std::uint64_t memory_of(const Destination& out);

class CudaBatchWriter {
 public:
  // `rooms`, `encoded`: of a lane no batch of which is under way. The recipe outlives the writer.
  CudaBatchWriter(const Recipe& recipe, Fidelity fidelity, std::uint64_t memory, const CudaBatchRooms& rooms,
                  std::span<std::byte> encoded);

  // kExhausted: there is no room for it. REQUIRES: check_task() and cuda_can_make() were content.
  Result<void> add(const SampleTask& task);

  CudaBatch& batch() { return batch_; }

 private:
  Result<void> add_view(const Recipe& recipe, const SampleGeometry& geometry, const Destination& out);
  Result<void> add_steps(const Recipe& recipe, const SampleGeometry& geometry, CudaView& view);
  Result<void> add_erased(const Recipe& recipe, const SampleGeometry& geometry, CudaView& view);

  const Recipe& recipe_;
  const CudaBatchRooms rooms_;
  const std::span<std::byte> encoded_;
  CudaBatch batch_;
  std::vector<kernels::Operation> drawn_;
};

}  // namespace millrace
