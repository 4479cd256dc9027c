// PNG filters as the standard defines them (PNG 9.2 to 9.4), and the choice among the targets.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/png/unfilter_kernels.h"

namespace millrace::kernels::png {
namespace {

using Byte = std::uint8_t;

void copy(const Byte* in, const Byte*, std::size_t count, Byte* out) {
  std::memcpy(out, in, count);
}

template <std::size_t kPixel>
void undo_sub(const Byte* in, const Byte*, std::size_t count, Byte* out) {
  std::memcpy(out, in, kPixel);
  for (std::size_t i = kPixel; i < count; ++i) out[i] = static_cast<Byte>(in[i] + out[i - kPixel]);
}

void undo_up(const Byte* in, const Byte* above, std::size_t count, Byte* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Byte>(in[i] + above[i]);
}

template <std::size_t kPixel>
void undo_average(const Byte* in, const Byte* above, std::size_t count, Byte* out) {
  for (std::size_t i = 0; i < kPixel; ++i) out[i] = static_cast<Byte>(in[i] + above[i] / 2);
  for (std::size_t i = kPixel; i < count; ++i) out[i] = static_cast<Byte>(in[i] + (out[i - kPixel] + above[i]) / 2);
}

int paeth(int left, int above, int corner) {
  const int guess = left + above - corner;
  const int to_left = std::abs(guess - left), to_above = std::abs(guess - above), to_corner = std::abs(guess - corner);
  if (to_left <= to_above && to_left <= to_corner) return left;
  return to_above <= to_corner ? above : corner;
}

template <std::size_t kPixel>
void undo_paeth(const Byte* in, const Byte* above, std::size_t count, Byte* out) {
  for (std::size_t i = 0; i < kPixel; ++i) out[i] = static_cast<Byte>(in[i] + above[i]);
  for (std::size_t i = kPixel; i < count; ++i)
    out[i] = static_cast<Byte>(in[i] + paeth(out[i - kPixel], above[i], above[i - kPixel]));
}

void drop_fourth_of_each(const Byte* in, std::size_t count, Byte* out) {
  for (std::size_t i = 0; i < count; ++i) std::copy_n(in + 4 * i, 3, out + 3 * i);
}

#include "kernels/cpu/png/unfilter_table.h"

const RowFunctions& row_functions(Target target) {
#if defined(__x86_64__)
  if (target >= Target::kAvx512Bw) return avx512_row_functions();
  if (target != Target::kScalar) return avx2_row_functions();
#endif
  static_cast<void>(target);
  return scalar_row_functions();
}

}  // namespace

const RowFunctions& scalar_row_functions() {
  return kFunctions;
}

UnfilterRow unfilter_row(Target target, Filter filter, std::size_t pixel_bytes) {
  const std::size_t size = pixel_bytes <= 4 ? pixel_bytes - 1 : pixel_bytes / 2 + 1;
  return row_functions(target).unfilter[static_cast<std::size_t>(filter)][size];
}

DropFourth drop_fourth(Target target) {
  return row_functions(target).drop_fourth;
}

}  // namespace millrace::kernels::png
