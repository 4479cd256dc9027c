// The loops of the horizontal pass by windows, for a file that has defined MILLRACE_ROWS_TARGET, MILLRACE_ROWS_INLINE,
// and a Vector of kWindows windows with its functions. Included once by each such file, in its anonymous namespace.
#pragma once

// Of one row.
struct Sums {
  Vector high, low;
};

MILLRACE_ROWS_INLINE const std::uint8_t* vector_at(const std::uint8_t* lines, int vector) {
  return lines + static_cast<std::ptrdiff_t>(vector) * static_cast<std::ptrdiff_t>(sizeof(Vector));
}

// Adds a block of kPairs pairs of taps to four rows' sums. kFirst: the sums begin with it.
template <int kPairs, bool kFirst>
MILLRACE_ROWS_INLINE void add_block(const std::uint8_t* lines, const AxisTable::Step* steps,
                                    const std::uint8_t* const* rows, std::uint8_t second_pair, Sums sums[kQuadRows]) {
  const Vector index = load(lines);
  const Vector high = load(vector_at(lines, 1)), low = load(vector_at(lines, 2));
  for (int r = 0; r < kQuadRows; ++r) {
    const Vector bytes = load_windows(rows[r], steps);
    const Vector taps = shuffled(bytes, index);
    Vector upper = products(taps, high), lower = products(taps, low);
    if constexpr (kPairs == 2) {
      const Vector more = shuffled(bytes, added_bytes(index, second_pair));
      upper = added(upper, products(more, load(vector_at(lines, 3))));
      lower = added(lower, products(more, load(vector_at(lines, 4))));
    }
    sums[r].high = kFirst ? upper : added(sums[r].high, upper);
    sums[r].low = kFirst ? lower : added(sums[r].low, lower);
  }
}

// kBlocks, kSingles: how many there are; -1: any number.
template <int kBlocks, int kSingles, class Output>
MILLRACE_ROWS_TARGET void filter_groups(const AxisTable& table, const std::uint8_t* const* in, const Output& output) {
  const std::uint8_t* const rows[kQuadRows] = {in[0], in[1], in[2], in[3]};
  const Output out = output;
  const int blocks = kBlocks >= 0 ? kBlocks : table.blocks, singles = kSingles >= 0 ? kSingles : table.pairs;
  const int samples = table.spec.count * table.spec.channels;
  const auto second_pair = static_cast<std::uint8_t>(2 * table.spec.channels);
  const std::uint8_t* lines = table.packed_bytes();
  const AxisTable::Step* steps = table.steps.data();
  for (int sample = 0; sample < samples; sample += kWindowSamples * kWindows) {
    Sums sums[kQuadRows];
    int b = 0, s = 0;
    if (blocks > 0) {
      add_block<2, true>(lines, steps, rows, second_pair, sums);
      lines = vector_at(lines, 5), steps += kWindows, b = 1;
    } else {
      add_block<1, true>(lines, steps, rows, second_pair, sums);
      lines = vector_at(lines, 3), steps += kWindows, s = 1;
    }
    for (; b < blocks; ++b, lines = vector_at(lines, 5), steps += kWindows)
      add_block<2, false>(lines, steps, rows, second_pair, sums);
    for (; s < singles; ++s, lines = vector_at(lines, 3), steps += kWindows)
      add_block<1, false>(lines, steps, rows, second_pair, sums);
    Vector joined[kQuadRows];
    for (int r = 0; r < kQuadRows; ++r) joined[r] = joined_halves(sums[r].high, sums[r].low);
    out.take(sample, joined);
  }
}

template <class Output>
void filter_windows(const AxisTable& table, const std::uint8_t* const* rows, const Output& out) {
  if (table.blocks == 1 && table.pairs == 0) return filter_groups<1, 0>(table, rows, out);
  if (table.blocks == 0 && table.pairs == 1) return filter_groups<0, 1>(table, rows, out);
  if (table.blocks == 1 && table.pairs == 1) return filter_groups<1, 1>(table, rows, out);
  filter_groups<-1, -1>(table, rows, out);
}
