// What the tests of the CUDA reconstruction share: batches whose tokens come from libjpeg-turbo's coefficients, made
// on the host executor, and the tensors that the CPU's reference functions make.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "kernels/cuda/plan/plan.h"
#include "kernels/tensor/store_table.h"
#include "tests/support/jpeg/jpeg_coefficients.h"

namespace millrace {

// In the turned picture.
struct TensorCut {
  kernels::Box crop;
  kernels::Flip flip = kernels::Flip::kNone;
  std::optional<kernels::Size> resized;  // of which the tensor is the part at (left, top)
  int left = 0, top = 0;
  kernels::Orientation orientation = kernels::Orientation::kUpright;
};

// The arrays that the kernels work on. Each has the size that is used, so that sanitizers see a kernel that leaves it.
class TokenBatch {
 public:
  explicit TokenBatch(const kernels::cuda::BatchRecipe& recipe);

  // What cut_tiles() says: empty, or why the image is not done here. REQUIRES: one or three components.
  std::string_view add(const JpegCoefficients& image, const TensorCut& cut, int wanted_tiles = 1);
  void run(std::uint32_t seed);

  std::size_t images() const { return jobs_.size(); }
  std::size_t tiles() const { return tiles_.size(); }
  std::vector<std::byte> tensor(std::size_t image) const;
  kernels::cuda::Status status(std::size_t image) const { return status_[image]; }
  void set_status(std::size_t image, kernels::cuda::Status status) { status_[image] = status; }
  // For damage.
  std::vector<kernels::cuda::Token>& tokens() { return tokens_; }

 private:
  kernels::cuda::ImageJob job_of(const JpegCoefficients& image, const TensorCut& cut);
  void append_blocks(const JpegCoefficients& image, kernels::cuda::ImageJob& job);
  void append_block(const JpegBlock& block, const kernels::cuda::ImageJob& job);

  kernels::cuda::BatchRecipe recipe_;
  kernels::StoreTable table_;
  kernels::cuda::TensorSpec spec_;
  std::vector<kernels::cuda::ImageJob> jobs_;
  std::vector<kernels::cuda::BlockEntry> blocks_;
  std::vector<kernels::cuda::Token> tokens_;
  std::vector<std::uint16_t> quants_;
  std::vector<std::int32_t> weights_;
  std::vector<kernels::cuda::Tile> tiles_;
  std::vector<kernels::cuda::Status> status_;
  std::vector<std::uint8_t> tensors_;
};

// libjpeg-turbo, then kernels::reference: turned, resampled, stored. `image`: its size as it is stored.
std::vector<std::byte> reference_tensor(std::span<const std::byte> file, kernels::Size image,
                                        const kernels::cuda::BatchRecipe& recipe, const TensorCut& cut);

}  // namespace millrace
