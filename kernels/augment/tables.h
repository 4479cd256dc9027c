// Steps that map each value by itself, as tables. Internal to kernels/augment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/augment/operation.h"

namespace millrace::kernels::augment {

using Table = std::array<std::uint8_t, 256>;

// How often each value is there.
class Histogram {
 public:
  void clear();
  void add(const std::uint8_t* values, std::size_t count);
  std::array<std::uint32_t, 256> counts() const;

 private:
  static constexpr std::size_t kParts = 4;  // so that equal neighbours do not wait for each other
  std::uint32_t parts_[kParts][256]{};
};

Table identity_table();
// Whether it does the same to a value whatever its channel, its place and the picture.
bool maps_values(Step step);
// REQUIRES: maps_values(operation.step).
Table value_table(const Operation& operation);
// Image.blend of a picture that is `degenerate` all over with the picture.
Table blend_table(int degenerate, float factor);
// From the least and the largest value of a picture.
Table autocontrast_table(int low, int high);
Table equalize_table(const std::array<std::uint32_t, 256>& histogram);

}  // namespace millrace::kernels::augment
