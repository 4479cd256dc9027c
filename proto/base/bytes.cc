#include "proto/base/bytes.h"

#include <array>
#include <cstdio>

namespace millrace {

std::string to_text(Bytes size) {
  constexpr std::array<const char*, 5> kUnits{"B", "kB", "MB", "GB", "TB"};
  if (size.count < 1000) return std::to_string(size.count) + " B";
  double value = static_cast<double>(size.count);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

std::string to_text_beside(Bytes size, Bytes other) {
  if (size == other || to_text(size) != to_text(other)) return to_text(size);
  return std::to_string(size.count) + " B";
}

}  // namespace millrace
