// Weights as tables, for the filters that the kernels do not compute. On the host. Thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/tensor/axis_weights.h"

namespace millrace::kernels::cuda {

// Appends a table (see Side) and returns where it begins: ImageJob::column_weights or row_weights.
std::uint32_t append_weight_table(const AxisSpec& side, std::vector<std::int32_t>& tables);

}  // namespace millrace::kernels::cuda
