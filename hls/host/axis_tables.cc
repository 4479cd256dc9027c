#include "hls/host/axis_tables.h"

namespace millrace::hls {
namespace {

constexpr std::size_t kMostWords = std::size_t{2} << 20;  // 8 MiB

std::vector<std::int32_t> words_of(const kernels::AxisWeights& weights) {
  std::vector<std::int32_t> words;
  words.reserve(weights.weight.size() + weights.start.size());
  auto weight = weights.weight.begin();
  for (const std::int32_t start : weights.start) {
    words.push_back(start);
    words.insert(words.end(), weight, weight + weights.taps);
    weight += weights.taps;
  }
  return words;
}

}  // namespace

void AxisTables::begin_batch() {
  ++batch_;
  if (words_ <= kMostWords) return;
  tables_.clear();
  words_ = 0;
}

AxisTables::Table& AxisTables::table_of(const kernels::AxisSpec& spec) {
  const auto [found, is_new] = tables_.try_emplace(spec);
  Table& table = found->second;
  if (!is_new) return table;
  const kernels::AxisWeights weights = kernels::axis_weights(spec);
  table.taps = weights.taps;
  table.words = words_of(weights);
  words_ += table.words.size();
  return table;
}

std::optional<AxisPlace> AxisTables::place(const kernels::AxisSpec& spec, CommandWriter& commands) {
  Table& table = table_of(spec);
  if (table.batch != batch_) {
    const auto unit = commands.append(std::as_bytes(std::span(table.words)));
    if (!unit) return std::nullopt;
    table.batch = batch_;
    table.unit = *unit;
  }
  return AxisPlace{table.unit, table.taps};
}

}  // namespace millrace::hls
