#include "kernels/cpu/png/inflate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "kernels/cpu/png/inflate_kernels.h"

namespace millrace::kernels::png {
namespace {

InflateSymbols symbols_of(Target target) {
#if defined(__x86_64__)
  if (target != Target::kScalar) return inflate_symbols_bmi2;
#endif
  static_cast<void>(target);
  return inflate_symbols_scalar;
}

// Up to 16 bits at a time out of a block's header. Reads behind the input's end within its slack, and then says so.
class Bits {
 public:
  Bits(InflateBits& kept, InflateInput& in) : kept_(kept), in_(in) { kept_.count &= 63; }

  std::uint32_t peek(unsigned count) {
    if (kept_.count < count) refill();
    return static_cast<std::uint32_t>(kept_.bits & ((1U << count) - 1));
  }
  void drop(unsigned count) {
    kept_.bits >>= count;
    kept_.count -= count;
  }
  std::uint32_t take(unsigned count) {
    const std::uint32_t value = peek(count);
    drop(count);
    return value;
  }
  bool is_over() const { return in_.next > in_.end + 8; }

  // Back to the first byte of which no bit was taken. False: that is behind the end.
  bool align() {
    in_.next -= kept_.count >> 3;
    kept_ = {};
    return in_.next <= in_.end;
  }

 private:
  void refill() {
    if (is_over()) {
      kept_.count = 63;  // zeros, of a header that will not be used
      return;
    }
    std::uint64_t word;
    std::memcpy(&word, in_.next, sizeof word);
    kept_.bits |= word << kept_.count;
    in_.next += 7 - (kept_.count >> 3);
    kept_.count |= 56;
  }

  InflateBits& kept_;
  InflateInput& in_;
};

}  // namespace

Inflater::Inflater(Target target) : symbols_(symbols_of(target)) {}

InflateStatus Inflater::run(InflateInput& in, InflateOutput& out) {
  while (true) {
    if (!in.is_last && in.end - in.next < std::ptrdiff_t{kMeal}) return InflateStatus::kHungry;
    bool goes_on = true;
    switch (stage_) {
      case Stage::kBegin:
        goes_on = begin(in);
        break;
      case Stage::kBlock:
        if (is_final_) return Bits(kept_, in).align() ? InflateStatus::kEnd : InflateStatus::kOdd;
        goes_on = begin_block(in);
        break;
      case Stage::kStored:
        if (out.next >= out.end) return InflateStatus::kFull;
        goes_on = copy_stored(in, out);
        break;
      case Stage::kSymbols: {
        const InflateStatus status = symbols_(codes_, kept_, in, out);
        if (status != InflateStatus::kEnd) return status;
        stage_ = Stage::kBlock;
        break;
      }
    }
    if (!goes_on) return InflateStatus::kOdd;
  }
}

// RFC 1950, 2.2: deflate, a window of 32 KiB at most, no dictionary.
bool Inflater::begin(InflateInput& in) {
  if (in.end - in.next < 2) return false;
  const unsigned method = in.next[0], flags = in.next[1];
  in.next += 2;
  stage_ = Stage::kBlock;
  return (method & 15) == 8 && method >> 4 <= 7 && (flags & 32) == 0 && (method << 8 | flags) % 31 == 0;
}

// RFC 1951, 3.2.3.
bool Inflater::begin_block(InflateInput& in) {
  Bits bits(kept_, in);
  is_final_ = bits.take(1) == 1;
  switch (bits.take(2)) {
    case 0:
      return begin_stored(in);
    case 1:
      if (!has_fixed_codes_) codes_.build_fixed();
      has_fixed_codes_ = true;
      stage_ = Stage::kSymbols;
      return true;
    case 2:
      has_fixed_codes_ = false;
      stage_ = Stage::kSymbols;
      return read_codes(in);
    default:
      return false;
  }
}

// RFC 1951, 3.2.4.
bool Inflater::begin_stored(InflateInput& in) {
  if (!Bits(kept_, in).align() || in.end - in.next < 4) return false;
  const unsigned length = in.next[0] | in.next[1] << 8, inverse = in.next[2] | in.next[3] << 8;
  in.next += 4;
  stored_left_ = length;
  stage_ = Stage::kStored;
  return (length ^ inverse) == 0xFFFF;
}

bool Inflater::copy_stored(InflateInput& in, InflateOutput& out) {
  const auto count = std::min({static_cast<std::size_t>(in.end - in.next), static_cast<std::size_t>(out.end - out.next),
                               std::size_t{stored_left_}});
  if (count == 0 && stored_left_ > 0) return false;
  std::memcpy(out.next, in.next, count);
  in.next += count;
  out.next += count;
  stored_left_ -= static_cast<std::uint32_t>(count);
  if (stored_left_ == 0) stage_ = Stage::kBlock;
  return true;
}

// RFC 1951, 3.2.7. What zlib does not take, and codes without an end of the block, are not taken either.
bool Inflater::read_codes(InflateInput& in) {
  constexpr std::uint8_t kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  Bits bits(kept_, in);
  const unsigned literals = bits.take(5) + 257, distances = bits.take(5) + 1, in_code = bits.take(4) + 4;
  if (literals > 286 || distances > 30) return false;
  std::array<std::uint8_t, 19> code_lengths{};
  for (unsigned i = 0; i < in_code; ++i) code_lengths[kOrder[i]] = static_cast<std::uint8_t>(bits.take(3));
  std::array<std::uint8_t, 128> table;
  if (!build_length_code(code_lengths, table)) return false;
  std::array<std::uint8_t, 286 + 30 + 138> lengths;
  const unsigned all = literals + distances;
  unsigned at = 0;
  while (at < all) {
    const std::uint8_t entry = table[bits.peek(7)];
    bits.drop(entry & 7);
    const unsigned symbol = entry >> 3;
    if (symbol < 16) {
      lengths[at++] = static_cast<std::uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && at == 0) return false;
    const unsigned repeats = symbol == 16 ? 3 + bits.take(2) : symbol == 17 ? 3 + bits.take(3) : 11 + bits.take(7);
    std::fill_n(lengths.begin() + at, repeats, symbol == 16 ? lengths[at - 1] : std::uint8_t{0});
    at += repeats;
  }
  if (at != all || bits.is_over() || lengths[256] == 0) return false;
  const std::span<const std::uint8_t> both(lengths);
  return codes_.build(both.first(literals), both.subspan(literals, distances));
}

}  // namespace millrace::kernels::png
