// Sixteen lanes in two groups of eight 64-bit ones: enough independent work to hide the gathers.
#include "kernels/cpu/jpeg/entropy/entropy_lanes.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_LANES __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define MILLRACE_LANES_INLINE MILLRACE_LANES inline __attribute__((always_inline))

namespace millrace::kernels::jpeg {
namespace {

using Vec = __m512i;
constexpr int kGroup = 8;
constexpr int kStateBits = 4;  // 16 states: each block's DC and AC table

MILLRACE_LANES_INLINE Vec set64(std::int64_t value) {
  return _mm512_set1_epi64(value);
}

// A field of a byte of each 64-bit lane, alone, as byte kTo.
template <EntryField kField, int kTo = 0>
MILLRACE_LANES_INLINE Vec byte_of(Vec entries) {
  constexpr int kByte = static_cast<int>(kField);
  constexpr std::int64_t kOthers = ~(std::int64_t{0xFF} << 8 * kTo);
  constexpr std::int64_t kLow = kOthers | std::int64_t{kByte} << 8 * kTo;
  constexpr std::int64_t kHigh = kOthers | std::int64_t{8 + kByte} << 8 * kTo;
  return _mm512_shuffle_epi8(entries, _mm512_set4_epi64(kHigh, kLow, kHigh, kLow));
}

// What follows a state, a word each: the next table's address / 8 and, below it, the next state's number.
struct States {
  alignas(64) std::uint64_t words[1 << kStateBits];
  const TableSwitch* switches[1 << kStateBits];

  explicit States(const McuBlock* first) {
    std::size_t count = 0;
    const McuBlock* block = first;
    do {
      switches[count++] = &block->behind_dc;
      switches[count++] = &block->behind_block;
      block = block->next;
    } while (block != first);
    for (std::size_t i = 0; i < 1 << kStateBits; ++i)
      words[i] = word(switches[i % count]->table, switches[(i + 1) % count]);
  }

  std::uint64_t word(TableAddress table, const TableSwitch* then) const {
    std::uint64_t number = 0;
    while (switches[number] != then) ++number;
    return table / 8 << kStateBits | number;
  }
};

struct Group {
  Vec position;  // bits, of the data
  Vec bits;      // the next ones, from the top
  Vec state;     // the table's address / 8 and, below it, the state's number
  Vec last;      // address of the last byte written
  Vec stop;      // the same when the lane is done
};

MILLRACE_LANES_INLINE void refill(Group& group, const std::uint8_t* data) {
  const Vec order = _mm512_broadcast_i32x4(_mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  const Vec words = _mm512_i64gather_epi64(_mm512_srli_epi64(group.position, 3), data, 1);
  group.bits = _mm512_sllv_epi64(_mm512_shuffle_epi8(words, order), _mm512_and_si512(group.position, set64(7)));
}

// An entry a lane that is not done. The lanes whose entry does not apply.
MILLRACE_LANES_INLINE __mmask8 look_up(Group& group, const Vec (&words)[2]) {
  const Vec at =
      _mm512_add_epi64(_mm512_srli_epi64(group.state, kStateBits), _mm512_srli_epi64(group.bits, 64 - kIndexBits));
  const Vec entry = _mm512_i64gather_epi64(at, nullptr, 8);
  const Vec reached =
      _mm512_add_epi64(_mm512_and_si512(group.last, set64(kBlockBytes - 1)), byte_of<EntryField::kReach>(entry));
  const __mmask8 busy = _mm512_cmplt_epu64_mask(group.last, group.stop);
  const __mmask8 good = _mm512_mask_cmplt_epu64_mask(busy, reached, set64(kBlockBytes));

  const Vec length = byte_of<EntryField::kBits>(entry), end = byte_of<EntryField::kEnd>(entry);
  const Vec consumed = _mm512_srlv_epi64(group.bits, _mm512_sub_epi64(set64(64), length));
  const Vec second =
      _mm512_slli_epi64(_mm512_add_epi64(consumed, _mm512_srli_epi64(entry, shift_of(EntryField::kRest))), 48);
  const Vec first = _mm512_srai_epi16((byte_of<EntryField::kFirst, 1>(entry)), 8);
  const Vec advance = byte_of<EntryField::kAdvance>(entry), offset = byte_of<EntryField::kOffset>(entry);
  const Vec distance = _mm512_slli_epi64(_mm512_sub_epi64(advance, offset), 3);
  const Vec values = _mm512_or_si512(first, _mm512_srlv_epi64(second, _mm512_sub_epi64(set64(64), distance)));
  // Up to three coefficients after the last one are zeroed, which they are anyway.
  _mm512_mask_i64scatter_epi64(reinterpret_cast<void*>(1), good, _mm512_add_epi64(group.last, offset), values, 1);

  group.bits = _mm512_mask_sllv_epi64(group.bits, good, group.bits, length);
  group.position = _mm512_mask_add_epi64(group.position, good, group.position, length);
  group.last = _mm512_mask_or_epi64(group.last, good, _mm512_add_epi64(group.last, advance), end);
  const __mmask8 turn = _mm512_mask_test_epi64_mask(good, end, end);
  group.state = _mm512_mask2_permutex2var_epi64(words[0], group.state, turn, words[1]);
  return static_cast<__mmask8>(busy & ~good);
}

// One lane's part of a group.
struct Lane {
  std::uint64_t position = 0, state = 0, last = 0, stop = 0;
};

// The lanes as scalar code reads them.
struct LaneView {
  alignas(64) std::uint64_t position[kLanes], state[kLanes], last[kLanes];

  MILLRACE_LANES_INLINE void store(const Group& group, int first) {
    _mm512_store_si512(position + first, group.position);
    _mm512_store_si512(state + first, group.state);
    _mm512_store_si512(last + first, group.last);
  }
};

MILLRACE_LANES_INLINE void replace(Group& group, unsigned mask, const Lane& lane) {
  const auto lanes = static_cast<__mmask8>(mask);
  group.position = _mm512_mask_set1_epi64(group.position, lanes, static_cast<std::int64_t>(lane.position));
  group.state = _mm512_mask_set1_epi64(group.state, lanes, static_cast<std::int64_t>(lane.state));
  group.last = _mm512_mask_set1_epi64(group.last, lanes, static_cast<std::int64_t>(lane.last));
  group.stop = _mm512_mask_set1_epi64(group.stop, lanes, static_cast<std::int64_t>(lane.stop));
}

class LaneDecoder {
 public:
  LaneDecoder(const std::uint8_t* data, std::span<LaneSegment> segments)
      : data_(data),
        left_(segments),
        states_(segments.front().first),
        idle_{.position = static_cast<std::uint64_t>(segments.front().bit), .state = states_.words[0]} {}

  MILLRACE_LANES void run() {
    const Vec words[2] = {_mm512_load_si512(states_.words), _mm512_load_si512(states_.words + kGroup)};
    Group a{}, b{};
    for (unsigned lane = 0; lane < kLanes; ++lane) put(a, b, lane, start_next(lane));
    while (active_ != 0) {
      unsigned rare_a = 0, rare_b = 0;
      for (int i = 0; i < kRounds; ++i) {
        refill(a, data_);
        refill(b, data_);
        for (int k = 0; k < 3; ++k) {
          rare_a = look_up(a, words);
          rare_b = look_up(b, words);
        }
      }
      const unsigned ended = _mm512_cmpeq_epi64_mask(a.last, a.stop) |
                             static_cast<unsigned>(_mm512_cmpeq_epi64_mask(b.last, b.stop)) << kGroup;
      const unsigned rare = rare_a | rare_b << kGroup;
      if ((rare | (ended & active_)) == 0) continue;
      view_.store(a, 0);
      view_.store(b, kGroup);
      for (unsigned left = rare; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(__builtin_ctz(left));
        put(a, b, lane, take_one(lane));
      }
      for (unsigned left = ended & active_; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(__builtin_ctz(left));
        segments_[lane]->end_bit = static_cast<std::int64_t>(view_.position[lane]);
        put(a, b, lane, start_next(lane));
      }
    }
  }

 private:
  static constexpr int kRounds = 2;  // of refills, before lanes in need of attention get it

  MILLRACE_LANES_INLINE static void put(Group& a, Group& b, unsigned lane, const Lane& state) {
    replace(a, 1U << lane & 0xFF, state);
    replace(b, 1U << lane >> kGroup, state);
  }

  // The next segment for a lane; without one it stands still.
  Lane start_next(unsigned lane) {
    active_ &= ~(1U << lane);
    if (left_.empty()) return idle_;
    LaneSegment& segment = left_.front();
    left_ = left_.subspan(1);
    active_ |= 1U << lane;
    segments_[lane] = &segment;
    segment.bad = false;
    const std::uint64_t last = reinterpret_cast<std::uintptr_t>(segment.out) - 1;
    return {.position = static_cast<std::uint64_t>(segment.bit),
            .state = states_.word(address_of(*segment.first->dc), &segment.first->behind_dc),
            .last = last,
            .stop = last + static_cast<std::uint64_t>(segment.blocks) * kBlockBytes};
  }

  // One symbol, whatever it is.
  __attribute__((noinline)) Lane take_one(unsigned lane) {
    LaneSegment& segment = *segments_[lane];
    const std::uint64_t state = view_.state[lane];
    const auto bit = static_cast<std::int64_t>(view_.position[lane]);
    Cursor cursor = cursor_at(data_, bit, *segment.first, segment.out);
    cursor.table = (state >> kStateBits) * 8;
    cursor.then = states_.switches[state & ((1 << kStateBits) - 1)];
    cursor.last = view_.last[lane];
    kernels_.take_one(cursor);
    segment.bad |= cursor.bad != 0;
    return {.position = static_cast<std::uint64_t>(bit_position(cursor, data_)),
            .state = states_.word(cursor.table, cursor.then),
            .last = cursor.last,
            .stop = reinterpret_cast<std::uintptr_t>(segment.out) - 1 +
                    static_cast<std::uint64_t>(segment.blocks) * kBlockBytes};
  }

  const EntropyKernels& kernels_ = bmi2_entropy_kernels();
  const std::uint8_t* data_;
  std::span<LaneSegment> left_;
  States states_;
  Lane idle_;
  LaneView view_;
  LaneSegment* segments_[kLanes] = {};
  unsigned active_ = 0;
};

}  // namespace

void decode_lanes_avx512(const std::uint8_t* data, std::span<LaneSegment> segments) {
  if (!segments.empty()) LaneDecoder(data, segments).run();
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
