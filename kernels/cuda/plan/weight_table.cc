#include "kernels/cuda/plan/weight_table.h"

namespace millrace::kernels::cuda {

std::uint32_t append_weight_table(const AxisSpec& side, std::vector<std::int32_t>& tables) {
  const AxisWeights weights = axis_weights(side);
  const std::size_t at = tables.size();
  tables.push_back(weights.taps);
  tables.insert(tables.end(), weights.start.begin(), weights.start.end());
  tables.insert(tables.end(), weights.weight.begin(), weights.weight.end());
  return static_cast<std::uint32_t>(at);
}

}  // namespace millrace::kernels::cuda
