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

enum class Block { kTwoPairs, kUpperBytes, kOnePair };
constexpr int vectors_of(Block block) {
  return block == Block::kTwoPairs ? 5 : block == Block::kUpperBytes ? 4 : 3;
}

// The sums of a block of one row's taps. With upper bytes they are all in `low`.
template <Block kBlock>
MILLRACE_ROWS_INLINE Sums filter_block(const std::uint8_t* lines, Vector bytes, std::uint8_t second_pair) {
  const Vector index = load(lines), taps = shuffled(bytes, index);
  const Vector first = load(vector_at(lines, 1)), second = load(vector_at(lines, 2));
  if constexpr (kBlock == Block::kOnePair) return {products(taps, first), products(taps, second)};
  const Vector third = load(vector_at(lines, 3));
  if constexpr (kBlock == Block::kUpperBytes) {
    const Vector low = added(products(even_bytes(taps), second), products(odd_bytes(taps), third));
    return {zeros(), with_upper(low, byte_products(taps, first))};
  } else {
    const Vector more = shuffled(bytes, added_bytes(index, second_pair));
    return {added(products(taps, first), products(more, third)),
            added(products(taps, second), products(more, load(vector_at(lines, 4))))};
  }
}

// Adds a block to four rows' sums. kFirst: they begin with it.
template <Block kBlock, bool kFirst>
MILLRACE_ROWS_INLINE void add_block(const std::uint8_t*& lines, const AxisTable::Step*& steps,
                                    const std::uint8_t* const* rows, std::uint8_t second_pair, Sums sums[kQuadRows]) {
  for (int r = 0; r < kQuadRows; ++r) {
    const Sums more = filter_block<kBlock>(lines, load_windows(rows[r], steps), second_pair);
    sums[r].low = kFirst ? more.low : added(sums[r].low, more.low);
    if (kFirst || kBlock != Block::kUpperBytes) sums[r].high = kFirst ? more.high : added(sums[r].high, more.high);
  }
  lines = vector_at(lines, vectors_of(kBlock));
  steps += kWindows;
}

// kTwo: the blocks of two pairs. kBlocks, kSingles: how many there are of two pairs and of one; -1: any number.
template <Block kTwo, int kBlocks, int kSingles, class Output>
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
    blocks > 0 ? add_block<kTwo, true>(lines, steps, rows, second_pair, sums)
               : add_block<Block::kOnePair, true>(lines, steps, rows, second_pair, sums);
    for (int b = 1; b < blocks; ++b) add_block<kTwo, false>(lines, steps, rows, second_pair, sums);
    for (int s = blocks > 0 ? 0 : 1; s < singles; ++s)
      add_block<Block::kOnePair, false>(lines, steps, rows, second_pair, sums);
    constexpr bool kIsJoined = kTwo == Block::kUpperBytes && kSingles == 0;
    Vector joined[kQuadRows];
    for (int r = 0; r < kQuadRows; ++r) joined[r] = kIsJoined ? sums[r].low : joined_halves(sums[r].high, sums[r].low);
    out.take(sample, joined);
  }
}

template <class Output>
void filter_windows(const AxisTable& table, const std::uint8_t* const* rows, const Output& out) {
  const bool one = table.blocks == 1 && table.pairs == 0;
  if (table.upper_bytes) {
    one ? filter_groups<Block::kUpperBytes, 1, 0>(table, rows, out)
        : filter_groups<Block::kUpperBytes, -1, -1>(table, rows, out);
    return;
  }
  if (one) return filter_groups<Block::kTwoPairs, 1, 0>(table, rows, out);
  if (table.blocks == 0 && table.pairs == 1) return filter_groups<Block::kTwoPairs, 0, 1>(table, rows, out);
  if (table.blocks == 1 && table.pairs == 1) return filter_groups<Block::kTwoPairs, 1, 1>(table, rows, out);
  filter_groups<Block::kTwoPairs, -1, -1>(table, rows, out);
}
