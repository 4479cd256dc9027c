#include "kernels/cuda/plan/host_run.h"

#include <utility>

#include "kernels/cuda/plan/batch_run.h"

namespace millrace::kernels::cuda {

HostBatch HostRunner::run(const BatchPlan& plan, std::span<const std::uint8_t> encoded, std::uint32_t seed,
                          int threads) {
  put_tables(plan, tables_);
  BatchRun run(plan, tables_, encoded, threads);
  run.all([seed](Grid grid, auto kernel) {
    grid.seed = seed;
    run_grid(grid, kernel);
  });
  return std::move(run.batch());
}

}  // namespace millrace::kernels::cuda
