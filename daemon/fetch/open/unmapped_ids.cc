#include "daemon/fetch/open/unmapped_ids.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

namespace millrace {
namespace {

constexpr std::uint64_t kIds = 0xFFFFFFFF;    // 0 to 2^32 - 2: the last number stands for no id at all
constexpr std::uint32_t kOverflowId = 65534;  // the kernel's DEFAULT_OVERFLOWUID

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::uint32_t number_in(const std::string& path) {
  std::uint32_t number = 0;
  return std::istringstream(text_of(path)) >> number ? number : kOverflowId;
}

std::optional<std::uint32_t> unmapped_id(const std::string& map, const std::string& overflow) {
  if (maps_every_id(text_of(map))) return std::nullopt;
  return number_in(overflow);
}

}  // namespace

bool maps_every_id(std::string_view map) {
  std::istringstream text{std::string(map)};
  const std::vector<std::uint64_t> numbers{std::istream_iterator<std::uint64_t>(text), {}};
  if (!text.eof() || numbers.size() % 3 != 0) return false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;  // the first id inside, how many
  for (std::size_t at = 0; at < numbers.size(); at += 3) {
    if (numbers[at] > kIds || numbers[at + 2] > kIds) return false;
    ranges.emplace_back(numbers[at], numbers[at + 2]);
  }
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t mapped = 0;  // every id before this one
  for (const auto& [first, count] : ranges) {
    if (first > mapped) return false;
    mapped = std::max(mapped, first + count);
  }
  return mapped >= kIds;
}

UnmappedIds unmapped_ids(const std::string& proc) {
  return {.user = unmapped_id(proc + "/self/uid_map", proc + "/sys/kernel/overflowuid"),
          .group = unmapped_id(proc + "/self/gid_map", proc + "/sys/kernel/overflowgid")};
}

}  // namespace millrace
