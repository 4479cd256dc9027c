#include "daemon/settings/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace millrace {
namespace {

constexpr std::size_t kLongest = 64;  // nobody means a known name by a longer one

// Levenshtein's distance: insertions, deletions and replacements.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace

std::optional<std::string_view> nearest_name(std::string_view name, std::span<const std::string_view> known) {
  if (name.size() > kLongest) return std::nullopt;
  std::optional<std::string_view> nearest;
  std::size_t least = 0;
  for (const std::string_view candidate : known) {
    // A key in the wrong table is one step further off than the same key in its own.
    const std::size_t steps = std::min(distance(name, candidate), distance(last_part(name), last_part(candidate)) + 1);
    if (nearest && steps >= least) continue;
    nearest = candidate;
    least = steps;
  }
  const std::size_t near = std::max<std::size_t>(2, last_part(name).size() / 3);
  if (least > near) return std::nullopt;
  return nearest;
}

}  // namespace millrace
