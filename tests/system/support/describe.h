// What tests compare of a batch, in one line that can also go from process to process: a hash of its pixels, its ids
// and its labels. Pure function.
#pragma once

#include <string>

#include "millrace/tensor.h"

namespace millrace {

std::string describe(const TensorView& tensor);  // "5c1f09... ids 3 1 2 labels 0 0 1"

}  // namespace millrace
