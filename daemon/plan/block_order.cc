#include "daemon/plan/block_order.h"

#include <algorithm>
#include <numeric>

namespace millrace {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

using Numbers = std::vector<std::uint32_t>;

// In ascending order of the keys mix(number + start), equal ones of the numbers.
void sort_by_key(Numbers::iterator begin, Numbers::iterator end, std::uint64_t start) {
  std::sort(begin, end, [start](std::uint64_t one, std::uint64_t other) {
    const std::uint64_t key = mix(one + start), other_key = mix(other + start);
    return key != other_key ? key < other_key : one < other;
  });
}

}  // namespace

std::vector<std::uint32_t> shuffled_in_blocks(const EpochOrderSpec& spec) {
  const std::uint64_t start = mix(spec.seed + mix(spec.epoch)), block_samples = spec.block_samples;
  Numbers blocks((spec.samples + block_samples - 1) / block_samples);
  std::iota(blocks.begin(), blocks.end(), 0U);
  sort_by_key(blocks.begin(), blocks.end(), mix(start));
  Numbers order;
  order.reserve(spec.samples);
  for (std::size_t first = 0; first < blocks.size();) {
    const std::size_t end = first + std::min<std::size_t>(spec.window_blocks, blocks.size() - first);
    const auto begin = static_cast<Numbers::difference_type>(order.size());
    for (; first < end; ++first) {
      const std::uint64_t sample = blocks[first] * block_samples;
      for (std::uint64_t i = sample; i < std::min(sample + block_samples, spec.samples); ++i)
        order.push_back(static_cast<std::uint32_t>(i));
    }
    sort_by_key(order.begin() + begin, order.end(), start);
  }
  return order;
}

}  // namespace millrace
