// How far two pictures or tensors of bytes are apart, in levels of 255.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

namespace millrace {

struct LevelDifference {
  double mean = 0;
  int most = 0;
};

// REQUIRES: as many bytes, at least one.
inline LevelDifference level_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  LevelDifference result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int levels = std::abs(std::to_integer<int>(a[i]) - std::to_integer<int>(b[i]));
    result.mean += levels;
    result.most = std::max(result.most, levels);
  }
  result.mean /= static_cast<double>(a.size());
  return result;
}

}  // namespace millrace
