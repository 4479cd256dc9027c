#include "kernels/tensor/resample_spec.h"

namespace millrace::kernels {
namespace {

bool is_side(int side) {
  return side >= 1 && side <= kMaxSide;
}

bool fits(int first, int count, int out) {
  return first >= 0 && count >= 1 && first < out && count <= out - first;
}

}  // namespace

bool is_valid(const ResampleSpec& spec) {
  const bool channels = spec.channels == 1 || spec.channels == 3 || spec.channels == 4;
  const bool sides = is_side(spec.source.width) && is_side(spec.source.height) && is_side(spec.target.width) &&
                     is_side(spec.target.height);
  return channels && sides && fits(spec.window.left, spec.window.width, spec.target.width) &&
         fits(spec.window.top, spec.window.height, spec.target.height);
}

bool filters_rows_first(const ResampleSpec& spec) {
  if (spec.order == PassOrder::kColumnsFirst || spec.source.width == spec.target.width) return false;
  const int lost_height = spec.source.height - spec.target.height;
  const int lost_width = spec.source.width - spec.target.width;
  return lost_height > 0 && lost_height > 2 * lost_width;
}

}  // namespace millrace::kernels
