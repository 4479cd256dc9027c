// What the tests of the FPGA kernels share: batches planned by the host's planner, run by a kernel compiled for this
// processor, with guards around each of its buffers; and the tensors beside libjpeg-turbo's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hls/base/burst.h"
#include "hls/host/completions.h"
#include "hls/host/planner.h"
#include "kernels/cuda/plan/plan.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {

using HlsKernel = void (*)(const hls::Burst*, const hls::Burst*, hls::Burst*, hls::Burst*, std::uint32_t, std::uint32_t,
                           std::uint32_t, std::uint32_t, std::uint32_t);

// Memory of any number of bytes, whose neighbours are looked at: written ones show in is_intact(), and with
// AddressSanitizer reading one is an error.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes, std::uint8_t fill = 0);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::span<std::byte> bytes() { return {data_ + kGuard, size_}; }
  hls::Burst* words() { return reinterpret_cast<hls::Burst*>(data_ + kGuard); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(size_); }
  // Once: the guards can be read from then on.
  bool is_intact();

 private:
  static constexpr std::size_t kGuard = 256;
  std::byte* data_;
  std::size_t size_;
};

struct HlsRequest {
  const File* file = nullptr;
  kernels::Box crop;
  kernels::Size resized;
  kernels::Box window;
  kernels::Flip flip = kernels::Flip::kNone;
  kernels::Size stored{};  // of rows
};

// The crop becomes a tensor of `size`.
HlsRequest whole_tensor(const File& file, const kernels::Box& crop, kernels::Size size,
                        kernels::Flip flip = kernels::Flip::kNone);

struct HlsImage {
  std::string refusal;  // the planner's
  hls::ImageOutcome outcome;
  std::vector<std::byte> tensor;  // of images that are done
  bool is_done() const { return refusal.empty() && outcome.reason == hls::Reason::kDone; }
};

// Plans batch after batch, and runs each.
class HlsRunner {
 public:
  explicit HlsRunner(const hls::BatchRecipe& recipe, HlsKernel kernel, hls::Source kind = hls::Source::kJpegScan);

  // Checks what holds of every batch: guards, completions, and, unless somebody meddles, that nothing but the tensors was written.
  std::vector<HlsImage> run(const std::vector<HlsRequest>& requests);

  // Called with the commands before the kernel runs, for damage.
  std::function<void(std::span<std::byte>)> meddle;

 private:
  hls::BatchRecipe recipe_;
  HlsKernel kernel_;
  hls::Source kind_;
  hls::Planner planner_;
  std::uint8_t phase_ = 0;
};

// What libjpeg-turbo and the reference functions make of a request; the file's size is its header's.
std::vector<std::byte> expected_tensor(const HlsRequest& request, const hls::BatchRecipe& recipe);

// What the reference functions make of pixels, a byte a channel, row by row.
std::vector<std::byte> expected_tensor(const kernels::U8View& pixels, const HlsRequest& request,
                                       const hls::BatchRecipe& recipe);

// The size of a file's picture; nullopt: not for our decoders.
std::optional<kernels::Size> jpeg_size(const File& file);

}  // namespace millrace
