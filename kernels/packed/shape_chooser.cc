#include "kernels/packed/shape_chooser.h"

#include <algorithm>

#include "kernels/packed/shape_search.h"
#include "kernels/packed/unpack.h"

namespace millrace::kernels::packed {
namespace {

using Find = int (*)(const Need&);

Find find_for(Target target) {
#if defined(__x86_64__)
  if (target == Target::kAvx512 && has_unpacking_vectors()) return find_shape_avx512;
  if (target == Target::kAvx512Bw) return find_shape_avx512bw;
  if (target != Target::kScalar) return find_shape_avx2;
#endif
  static_cast<void>(target);
  return find_shape;
}

constexpr Candidates make_candidates(const std::array<ShapeSpec, kRawShape>& specs) {
  Candidates all{};
  for (std::size_t id = 0; id < kRawShape; ++id) {
    bool aligned = false;
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto width = static_cast<std::uint64_t>(specs[id].widths[lane]);
      all.widths[id] |= width << (8 * lane);
      all.costs[id] |= (width == kWideWidth ? 12 : width) << (8 * lane);
      aligned |= width >= 8;
    }
    const int beside = 8 * specs[id].bitmap_bytes + (aligned ? 4 : 0);
    all.base[id] = static_cast<std::uint64_t>(beside) << 8 | id;
  }
  all.base[kRawShape] = kRawCost;
  for (int bytes = 0; bytes <= 8; ++bytes) {
    int& first = all.first[static_cast<std::size_t>(bytes)];
    while (specs[static_cast<std::size_t>(first)].bitmap_bytes < bytes) ++first;
  }
  return all;
}

}  // namespace

constinit const Candidates kCandidates = make_candidates(kShapeSpecs);

ShapeChooser::ShapeChooser(Target target) : find_(find_for(target)), memos_(std::size_t{1} << kMemoBits) {}

int find_shape(const Need& need) {
  int best = kRawShape, least = 1 << 30;
  for (int id = 0; id < kRawShape; ++id) {
    const ShapeSpec& spec = kShapeSpecs[static_cast<std::size_t>(id)];
    if (spec.bitmap_bytes < static_cast<int>(need.bitmap_bytes)) continue;
    const bool aligned = kShapes[static_cast<std::size_t>(id)].align != 0;
    int cost = 8 * spec.bitmap_bytes + (aligned ? 4 : 0);
    bool holds = true;
    for (int lane = 0, left = static_cast<int>(need.values); left > 0; ++lane, left -= 8) {
      const int width = spec.widths[lane];
      holds &= width >= static_cast<int>(need.widths >> (4 * lane) & 15);
      cost += (width == kWideWidth ? 12 : width) * std::min(left, 8);
    }
    if (holds && cost < least) {
      least = cost;
      best = id;
    }
  }
  return best;
}

}  // namespace millrace::kernels::packed
