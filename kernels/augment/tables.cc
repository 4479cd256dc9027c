#include "kernels/augment/tables.h"

#include <algorithm>
#include <cstring>

namespace millrace::kernels::augment {
namespace {

template <class Function>
Table make(Function&& function) {
  Table table{};
  for (int i = 0; i < 256; ++i) table[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(function(i));
  return table;
}

}  // namespace

Table identity_table() {
  return make([](int i) { return i; });
}

bool maps_values(Step step) {
  return step == Step::kInvert || step == Step::kPosterize || step == Step::kSolarize || step == Step::kSolarizeAdd ||
         step == Step::kBrightness;
}

Table value_table(const Operation& operation) {
  if (operation.step == Step::kBrightness) return blend_table(0, operation.factor);
  if (operation.step == Step::kPosterize) {
    return make([mask = 0xFF << (8 - operation.value)](int i) { return i & mask; });
  }
  if (operation.step == Step::kSolarizeAdd) {
    return make(
        [&](int i) { return static_cast<float>(i) < operation.factor ? std::clamp(i + operation.value, 0, 255) : i; });
  }
  const float threshold = operation.step == Step::kSolarize ? operation.factor : 0;
  return make([threshold](int i) { return static_cast<float>(i) < threshold ? i : 255 - i; });
}

Table blend_table(int degenerate, float factor) {
  return make([=](int i) {
    const float value = static_cast<float>(degenerate) + factor * static_cast<float>(i - degenerate);
    return static_cast<int>(std::clamp(value, 0.0F, 255.0F));
  });
}

Table autocontrast_table(int low, int high) {
  if (high <= low) return identity_table();
  const double scale = 255.0 / (high - low);
  const double offset = -low * scale;
  return make([=](int i) { return std::clamp(static_cast<int>(i * scale + offset), 0, 255); });
}

void Histogram::clear() {
  std::memset(parts_, 0, sizeof parts_);
}

void Histogram::add(const std::uint8_t* values, std::size_t count) {
  std::size_t i = 0;
  for (; i + kParts <= count; i += kParts) {
    for (std::size_t k = 0; k < kParts; ++k) ++parts_[k][values[i + k]];
  }
  for (; i < count; ++i) ++parts_[0][values[i]];
}

std::array<std::uint32_t, 256> Histogram::counts() const {
  std::array<std::uint32_t, 256> sums{};
  for (const auto& part : parts_) {
    for (std::size_t value = 0; value < 256; ++value) sums[value] += part[value];
  }
  return sums;
}

Table equalize_table(const std::array<std::uint32_t, 256>& histogram) {
  std::uint64_t all = 0;
  std::uint32_t last = 0;
  for (const std::uint32_t count : histogram) {
    all += count;
    if (count != 0) last = count;
  }
  const std::uint64_t step = (all - last) / 255;
  if (step == 0) return identity_table();
  std::uint64_t sum = step / 2;
  return make([&](int i) {
    const std::uint64_t value = std::min<std::uint64_t>(sum / step, 255);
    sum += histogram[static_cast<std::size_t>(i)];
    return value;
  });
}

}  // namespace millrace::kernels::augment
