#include "kernels/cpu/workspace.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/rows/row_kernels.h"

namespace millrace::kernels {
namespace {

// More scratch than this is given back as soon as less will do.
constexpr std::size_t kKeptLines = (std::size_t{8} << 20) / sizeof(Line);

std::uint8_t* sized(std::vector<Line>& lines, std::size_t bytes) {
  const std::size_t count = (bytes + sizeof(Line) - 1) / sizeof(Line);
  if (lines.size() > kKeptLines && count <= kKeptLines) lines = std::vector<Line>();
  if (lines.size() < count) lines.resize(count);
  return reinterpret_cast<std::uint8_t*>(lines.data());
}

}  // namespace

Workspace::Workspace(Target target, std::size_t table_bytes) : target_(target), table_budget_(table_bytes) {}

ResamplePlan Workspace::plan(const ResampleSpec& spec) {
  const AxisSpec columns{Axis::kColumns,   spec.channels,     spec.source.width, spec.target.width,
                         spec.window.left, spec.window.width, spec.filter};
  const AxisSpec rows{Axis::kRows,        1,          spec.source.height, spec.target.height, spec.window.top,
                      spec.window.height, spec.filter};
  evict();
  return {spec, &table(columns), &table(rows)};
}

const AxisTable& Workspace::table(const AxisSpec& spec) {
  Cached& cached = tables_[spec];
  cached.used = ++clock_;
  AxisTable& table = cached.table;
  if (!table.weights.start.empty()) return table;
  table.spec = spec;
  table.weights = axis_weights(spec);
  table.clamps = may_leave_bytes(table.weights);
  if (spec.filter != Filter::kNearest) {
    const RowKernels& kernels = row_kernels(target_);
    spec.axis == Axis::kColumns ? kernels.pack_columns(table) : kernels.pack_rows(table);
  }
  table_bytes_ += table.size_in_bytes();
  return table;
}

// Before a plan is made, never within: its tables stay. Thus the tables of one plan, at most, exceed the budget. The
// older half goes at once, so that looking for it costs next to nothing a table.
void Workspace::evict() {
  if (table_bytes_ <= table_budget_ || tables_.empty()) return;
  std::vector<std::uint64_t> used;
  for (const auto& [spec, cached] : tables_) used.push_back(cached.used);
  const auto middle = used.begin() + static_cast<std::ptrdiff_t>(used.size() / 2);
  std::nth_element(used.begin(), middle, used.end());
  std::erase_if(tables_, [&](const auto& entry) {
    if (entry.second.used > *middle) return false;
    table_bytes_ -= entry.second.table.size_in_bytes();
    return true;
  });
}

std::uint8_t* Workspace::ring(std::size_t bytes) {
  return sized(ring_, bytes);
}
std::uint8_t* Workspace::store_rows(std::size_t bytes) {
  return sized(store_rows_, bytes);
}
std::uint8_t* Workspace::pixel_row(std::size_t bytes) {
  return sized(pixel_row_, bytes);
}

}  // namespace millrace::kernels
