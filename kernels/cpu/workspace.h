// What the kernels of one thread keep between pictures: the target, coefficient tables of sizes seen before, scratch
// rows.
//
// Tables are kept a side (in, out, window, filter), not a picture, because random crops repeat their sides far more
// often than their sizes; the half of them that was not used for longest goes when
// they outgrow the budget. Thread-bound(the lane that owns it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "kernels/base/target.h"
#include "kernels/base/time_limit.h"
#include "kernels/cpu/axis_table.h"
#include "kernels/cpu/resample.h"

namespace millrace::kernels {

inline constexpr std::size_t kDefaultTableBytes = std::size_t{4} << 20;

class Workspace {
 public:
  // REQUIRES: is_available(target).
  explicit Workspace(Target target = best_target(), std::size_t table_bytes = kDefaultTableBytes);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  Target target() const { return target_; }

  // The tables for `spec`, built when they are not at hand (tens of microseconds). The plan is good until the next
  // call. REQUIRES: is_valid(spec).
  ResamplePlan plan(const ResampleSpec& spec);

  // Scratch for the kernels themselves, 64-byte aligned and zeroed when new; it keeps its contents until the same
  // scratch is asked for again. The ring belongs to resample_rows(), the others to ImageStore. They grow as needed (the
  // ring to a source picture's bytes at most, for the steepest shrinking) and fall back below 8 MiB afterwards.
  std::uint8_t* ring(std::size_t bytes);
  std::uint8_t* store_rows(std::size_t bytes);
  std::uint8_t* pixel_row(std::size_t bytes);
  std::vector<const std::uint8_t*>& quads() { return quads_; }

  // Of the picture at hand. Resampling stops once it is over, with rows missing.
  TimeLimit& limit() { return limit_; }

 private:
  struct Cached {
    AxisTable table;
    std::uint64_t used = 0;
  };

  const AxisTable& table(const AxisSpec& spec);
  void evict();

  Target target_;
  std::size_t table_budget_;
  std::size_t table_bytes_ = 0;
  std::uint64_t clock_ = 0;
  std::map<AxisSpec, Cached> tables_;
  std::vector<Line> ring_;
  std::vector<Line> store_rows_;
  std::vector<Line> pixel_row_;
  std::vector<const std::uint8_t*> quads_;
  TimeLimit limit_;
};

}  // namespace millrace::kernels
