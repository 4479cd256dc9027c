// Lists of steps that need no planes: those that map all values alike, and vertical flips. Internal to kernels/augment.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "kernels/augment/kernels.h"
#include "kernels/augment/plane_memory.h"
#include "kernels/augment/pointwise.h"
#include "kernels/augment/tables.h"
#include "kernels/base/image_view.h"
#include "kernels/base/time_limit.h"

namespace millrace::kernels::augment {

// What all of them together make of a value, whatever its channel and its place; nullopt: one does not work so, or there
// are none.
inline std::optional<Table> common_table(std::span<const Operation> operations) {
  std::optional<Table> all;
  for (const Operation& operation : operations) {
    if (!maps_values(operation.step)) return std::nullopt;
    if (!all) all = identity_table();
    Pointwise::chain(*all, value_table(operation));
  }
  return all;
}

// Whether they are all vertical flips: an odd number turns the picture upside down.
inline bool are_vertical_flips(std::span<const Operation> operations) {
  return !operations.empty() && std::all_of(operations.begin(), operations.end(), [](const Operation& operation) {
    return operation.step == Step::kFlipVertical;
  });
}

// `in` and `out` may be the same. `room`: for the planes of a picture as large, which lose what they hold. False when the
// limit was over.
class WholePixels {
 public:
  WholePixels(const Kernels& kernels, Byte* room) : kernels_(kernels), room_(room) {}

  bool map(const U8View& in, const Table& table, TimeLimit& limit, const MutableU8View& out) const {
    constexpr std::size_t kPart = 12'288;  // bytes
    const std::size_t row = 3 * static_cast<std::size_t>(in.width);
    const bool is_one = in.stride == static_cast<std::ptrdiff_t>(row) && out.stride == in.stride;
    const std::size_t bytes = is_one ? row * static_cast<std::size_t>(in.height) : row;
    for (int y = 0; y < (is_one ? 1 : in.height); ++y) {
      for (std::size_t at = 0; at < bytes; at += kPart) {
        const std::size_t count = std::min(kPart, bytes - at);
        if (limit.is_over_after(count / 3)) return false;
        std::memcpy(room_, in.row(y) + at, count);
        kernels_.map(table.data(), room_, padded(count));
        std::memcpy(out.row(y) + at, room_, count);
      }
    }
    return true;
  }

  // Upside down.
  bool flip(const U8View& in, TimeLimit& limit, const MutableU8View& out) const {
    const auto width = static_cast<std::size_t>(in.width);
    for (int y = 0; y < (in.height + 1) / 2; ++y) {
      if (limit.is_over_after(2 * width)) return false;
      const int other = in.height - 1 - y;
      std::memcpy(room_, in.row(y), 3 * width);
      if (other != y) std::memcpy(out.row(y), in.row(other), 3 * width);
      std::memcpy(out.row(other), room_, 3 * width);
    }
    return true;
  }

 private:
  const Kernels& kernels_;
  Byte* const room_;
};

}  // namespace millrace::kernels::augment
