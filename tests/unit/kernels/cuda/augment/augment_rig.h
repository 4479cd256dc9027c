// What the tests of the CUDA augmentation share: batches of pictures on any executor, what the CPU's own code makes of
// the same pictures, and random pictures with canvases, operations and erased boxes. For fuzz_cuda_augment, too.
#pragma once

#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/augment/operation.h"
#include "kernels/base/target.h"
#include "kernels/cuda/augment/augment.h"
#include "kernels/cuda/host_block.h"
#include "kernels/cuda/plan/picture_plan.h"
#include "kernels/tensor/store_table.h"

namespace millrace {

struct AugmentCase {
  kernels::Size inner, size;
  std::optional<kernels::cuda::Canvas> canvas;
  std::vector<kernels::Operation> operations;
  std::vector<kernels::cuda::Erased> erased;
  std::vector<std::uint8_t> pixels;  // RGB, of `inner`
};

kernels::cuda::TensorSpec store_as_tensor(const kernels::StoreSpec& store);

// A batch's arrays, each just as long as the plan says, so that sanitizers see a kernel that leaves it.
class AugmentBatch {
 public:
  explicit AugmentBatch(const kernels::StoreSpec& store) : table_(store), values_(store_values(table_)) {}

  // What append_picture() says.
  std::string_view add(const AugmentCase& one);

  // executor(grid, kernel), as BatchRun has it.
  template <class Executor>
  void run(const Executor& executor, std::uint32_t seed = 1) {
    scratch_.assign(plan_.scratch_bytes / sizeof(std::uint32_t), 0xA5A5A5A5 + seed);
    const kernels::cuda::AugmentArgs args{.spec = store_as_tensor(table_.spec()),
                                          .jobs = plan_.jobs.data(),
                                          .steps = plan_.steps.data(),
                                          .boxes = plan_.boxes.data(),
                                          .tables = plan_.tables.data(),
                                          .pictures = pictures_.data(),
                                          .scratch = reinterpret_cast<unsigned char*>(scratch_.data()),
                                          .store = values_.data(),
                                          .tensors = reinterpret_cast<std::uint8_t*>(tensors_.data()),
                                          .status = status_.data()};
    const kernels::cuda::Grid grid{
        .blocks = static_cast<int>(plan_.jobs.size()), .threads = kernels::cuda::kAugmentThreads, .seed = seed};
    executor(grid, [&](auto& block) { kernels::cuda::augment(block, args); });
  }
  void run_on_host(std::uint32_t seed) {
    run([](const kernels::cuda::Grid& grid, auto kernel) { kernels::cuda::run_grid(grid, kernel); }, seed);
  }

  std::span<const std::byte> tensor(std::size_t job) const;
  void set_status(std::size_t job, kernels::cuda::Status status) { status_[job] = status; }
  const kernels::cuda::PicturePlan& plan() const { return plan_; }

 private:
  static std::vector<std::uint32_t> store_values(const kernels::StoreTable& table);

  kernels::StoreTable table_;
  std::vector<std::uint32_t> values_;
  kernels::cuda::PicturePlan plan_;
  std::vector<std::uint8_t> pictures_;
  std::vector<std::uint32_t> scratch_;
  std::vector<std::byte> tensors_;
  std::vector<kernels::cuda::Status> status_;
};

// pad_picture(), pixel by pixel; Augmenter; ImageStore; erase(). REQUIRES: what append_picture() takes.
std::vector<std::byte> augmented_tensor(const AugmentCase& one, const kernels::StoreSpec& store,
                                        kernels::Target target);

using AugmentRandom = std::mt19937;

kernels::Operation plain_step(kernels::Step step, float factor = 1, int value = 0);
// Valid, of any kind but sums.
kernels::Operation random_step(AugmentRandom& random, kernels::Step step, kernels::Size size);
// Valid, and without a change of the size.
std::vector<kernels::Operation> random_steps(AugmentRandom& random, kernels::Size size, std::size_t count);
// A sum of one or more pictures that so many steps are divided among.
std::vector<kernels::Operation> random_sum(AugmentRandom& random, kernels::Size size, std::size_t count);
AugmentCase random_picture(AugmentRandom& random, kernels::Size size);
// Which may lie beyond the resized picture on any side. Changes one.inner and one.pixels.
void put_random_canvas(AugmentRandom& random, AugmentCase& one);
std::vector<kernels::cuda::Erased> random_erased(AugmentRandom& random, kernels::Size size, kernels::DType dtype);
kernels::StoreSpec random_store(AugmentRandom& random);

}  // namespace millrace
