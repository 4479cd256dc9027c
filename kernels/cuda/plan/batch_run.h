// A planned batch's arrays in a host's memory, and its launches. Each array is memory of its own and just as long
// as the plan says, so that sanitizers see a kernel that leaves it. What steps through the threads is the caller's, an
// *executor*: executor(grid, kernel) calls kernel(block) for every block of the grid.
//
//   BatchRun run(plan, tables, encoded, threads);
//   run.all([](const Grid& grid, auto kernel) { run_grid(grid, kernel); });
//   use(run.batch());
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "kernels/cuda/augment/augment.h"
#include "kernels/cuda/host_block.h"
#include "kernels/cuda/plan/host_run.h"
#include "kernels/cuda/reconstruct/reconstruct.h"
#include "kernels/cuda/tokenise/tokenise.h"
#include "kernels/cuda/unpack/unpack.h"

namespace millrace::kernels::cuda {

// Thread-bound(its owner). The plan and the tables outlive it.
class BatchRun {
 public:
  static constexpr int kTokeniseGrid = 3;  // thread blocks: fewer than images, as on a GPU

  // `tables`: plan.table_slots of them, the plan's new ones in their places. `threads`: of a block of the tokeniser.
  BatchRun(const BatchPlan& plan, std::span<const DecodeTable> tables, std::span<const std::uint8_t> encoded,
           int threads)
      : plan_(plan),
        tables_(tables),
        bytes_(encoded),
        threads_(threads),
        tokens_(plan.tokens),
        blocks_(plan.blocks),
        pictures_(plan.picture_bytes),
        picture_scratch_(plan.pictures.scratch_bytes / sizeof(std::uint64_t)),
        scratch_(kTokeniseGrid * scratch_bytes(TokeniseShape{}, threads) / sizeof(std::uint64_t)),
        batch_{std::vector<std::byte>(plan.tensors_bytes, kUnwritten), std::vector<Status>(plan.jobs.size())} {}

  template <class Executor>
  void all(const Executor& executor) {
    tokenise(executor);
    unpack(executor);
    reconstruct(executor);
    augment(executor);
  }

  template <class Executor>
  void tokenise(const Executor& executor) {
    const TokeniseArgs args{.jobs = plan_.jobs.data(),
                            .images = static_cast<std::uint32_t>(plan_.jobs.size()),
                            .bytes = bytes_.data(),
                            .tables = tables_.data(),
                            .segments = plan_.segments.data(),
                            .tokens = tokens_.data(),
                            .blocks = blocks_.data(),
                            .statuses = batch_.statuses.data(),
                            .work = nullptr,
                            .next_image = &next_image_,
                            .scratch = reinterpret_cast<unsigned char*>(scratch_.data()),
                            .shape = {}};
    executor(Grid{.blocks = kTokeniseGrid, .threads = threads_}, [&](auto& block) { cuda::tokenise(block, args); });
  }

  template <class Executor>
  void unpack(const Executor& executor) {
    const UnpackArgs args{.groups = plan_.groups.data(),
                          .jobs = plan_.jobs.data(),
                          .bytes = bytes_.data(),
                          .shapes = plan_.shapes.data(),
                          .tokens = tokens_.data(),
                          .blocks = blocks_.data(),
                          .statuses = batch_.statuses.data()};
    executor(Grid{.blocks = static_cast<int>(plan_.groups.size()), .threads = kUnpackThreads},
             [&](auto& block) { cuda::unpack(block, args); });
  }

  template <class Executor>
  void reconstruct(const Executor& executor) {
    const ReconstructArgs args{.spec = plan_.spec,
                               .tiles = plan_.tiles.data(),
                               .images = plan_.jobs.data(),
                               .blocks = blocks_.data(),
                               .tokens = tokens_.data(),
                               .quants = plan_.quants.empty() ? nullptr : plan_.quants.front().data(),
                               .weights = plan_.weights.data(),
                               .store = plan_.store.data(),
                               .tensors = plan_.pictures.jobs.empty() ? tensors() : pictures_.data(),
                               .status = batch_.statuses.data()};
    executor(Grid{.blocks = static_cast<int>(plan_.tiles.size()), .threads = kTileThreads},
             [&](auto& block) { reconstruct_tile(block, args); });
  }

  template <class Executor>
  void augment(const Executor& executor) {
    const PicturePlan& plan = plan_.pictures;
    const AugmentArgs args{.spec = plan_.tensor_spec,
                           .jobs = plan.jobs.data(),
                           .steps = plan.steps.data(),
                           .boxes = plan.boxes.data(),
                           .tables = plan.tables.data(),
                           .pictures = pictures_.data(),
                           .scratch = reinterpret_cast<unsigned char*>(picture_scratch_.data()),
                           .store = plan_.tensor_store.data(),
                           .tensors = tensors(),
                           .status = batch_.statuses.data()};
    executor(Grid{.blocks = static_cast<int>(plan.jobs.size()), .threads = kAugmentThreads},
             [&](auto& block) { cuda::augment(block, args); });
  }

  const std::vector<Token>& tokens() const { return tokens_; }
  const std::vector<BlockEntry>& blocks() const { return blocks_; }
  HostBatch& batch() { return batch_; }

 private:
  static constexpr std::byte kUnwritten{0xA5};

  std::uint8_t* tensors() { return reinterpret_cast<std::uint8_t*>(batch_.tensors.data()); }

  // Bytes at an address that is a multiple of 16, as a GPU's memory begins.
  class AlignedBytes {
   public:
    explicit AlignedBytes(std::span<const std::uint8_t> bytes)
        : bytes_(static_cast<std::uint8_t*>(::operator new(std::max<std::size_t>(bytes.size(), 1), kAlignment))) {
      if (!bytes.empty()) std::memcpy(bytes_.get(), bytes.data(), bytes.size());
    }
    const std::uint8_t* data() const { return bytes_.get(); }

   private:
    static constexpr std::align_val_t kAlignment{16};
    struct Delete {
      void operator()(std::uint8_t* bytes) const { ::operator delete(bytes, kAlignment); }
    };
    std::unique_ptr<std::uint8_t, Delete> bytes_;
  };

  const BatchPlan& plan_;
  const std::span<const DecodeTable> tables_;
  const AlignedBytes bytes_;
  const int threads_;
  std::vector<Token> tokens_;
  std::vector<BlockEntry> blocks_;
  std::vector<std::uint8_t> pictures_;
  std::vector<std::uint64_t> picture_scratch_;
  std::vector<std::uint64_t> scratch_;
  std::uint32_t next_image_ = 0;
  HostBatch batch_;
};

// The plan's new tables into their places among those of the batches before.
inline void put_tables(const BatchPlan& plan, std::vector<DecodeTable>& tables) {
  tables.resize(plan.table_slots);
  for (const TableRun& run : plan.table_runs)
    std::copy_n(plan.new_tables.begin() + run.first, run.count, tables.begin() + run.slot);
}

}  // namespace millrace::kernels::cuda
