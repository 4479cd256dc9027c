#include "kernels/cuda/host_run.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "kernels/cuda/host_block.h"
#include "kernels/cuda/reconstruct.h"
#include "kernels/cuda/tokenise.h"
#include "kernels/cuda/unpack.h"

namespace millrace::kernels::cuda {
namespace {

constexpr std::byte kUnwritten{0xA5};
constexpr int kHostBlocks = 3;  // fewer than images, as on a GPU

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

}  // namespace

HostBatch HostRunner::run(const BatchPlan& plan, std::span<const std::uint8_t> encoded, std::uint32_t seed,
                          int threads) {
  tables_.resize(plan.table_slots);
  for (const TableRun& run : plan.table_runs)
    std::copy_n(plan.new_tables.begin() + run.first, run.count, tables_.begin() + run.slot);
  const AlignedBytes bytes(encoded);
  const TokeniseShape shape;
  std::vector<Token> tokens(plan.tokens);
  std::vector<BlockEntry> blocks(plan.blocks);
  std::vector<std::uint64_t> scratch(kHostBlocks * scratch_bytes(shape, threads) / sizeof(std::uint64_t));
  std::uint32_t next_image = 0;
  HostBatch batch{std::vector<std::byte>(plan.refusals.size() * plan.tensor_bytes, kUnwritten),
                  std::vector<Status>(plan.jobs.size())};

  const TokeniseArgs tokenise_args{.jobs = plan.jobs.data(),
                                   .images = static_cast<std::uint32_t>(plan.jobs.size()),
                                   .bytes = bytes.data(),
                                   .tables = tables_.data(),
                                   .segments = plan.segments.data(),
                                   .tokens = tokens.data(),
                                   .blocks = blocks.data(),
                                   .statuses = batch.statuses.data(),
                                   .work = nullptr,
                                   .next_image = &next_image,
                                   .scratch = reinterpret_cast<unsigned char*>(scratch.data()),
                                   .shape = shape};
  run_grid({kHostBlocks, threads, seed}, [&](HostBlock& block) { tokenise(block, tokenise_args); });

  const UnpackArgs unpack_args{.groups = plan.groups.data(),
                               .jobs = plan.jobs.data(),
                               .bytes = bytes.data(),
                               .shapes = plan.shapes.data(),
                               .tokens = tokens.data(),
                               .blocks = blocks.data(),
                               .statuses = batch.statuses.data()};
  run_grid({static_cast<int>(plan.groups.size()), kUnpackThreads, seed},
           [&](HostBlock& block) { unpack(block, unpack_args); });

  const ReconstructArgs reconstruct_args{.spec = plan.spec,
                                         .tiles = plan.tiles.data(),
                                         .images = plan.jobs.data(),
                                         .blocks = blocks.data(),
                                         .tokens = tokens.data(),
                                         .quants = plan.quants.empty() ? nullptr : plan.quants.front().data(),
                                         .weights = plan.weights.data(),
                                         .store = plan.store.data(),
                                         .tensors = reinterpret_cast<std::uint8_t*>(batch.tensors.data()),
                                         .status = batch.statuses.data()};
  run_grid({static_cast<int>(plan.tiles.size()), kTileThreads, seed},
           [&](HostBlock& block) { reconstruct_tile(block, reconstruct_args); });
  return batch;
}

}  // namespace millrace::kernels::cuda
