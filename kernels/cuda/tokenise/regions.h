// A thread's part of a window: regions one after the other, each with the state in which it was entered and what it
// gave. Decoded again from another state, a thread stops where it enters a region in the state in which it did before:
// all after that stands.
#pragma once

#include <cstdint>

#include "kernels/cuda/tokenise/symbols.h"
#include "kernels/cuda/tokenise/tokenise_args.h"

namespace millrace::kernels::cuda {

// Between two symbols, at a region's beginning: bits of it that the symbol before has taken (0-4), block of the MCU
// (5-7), coefficient that comes next (8-13).
using State = std::uint16_t;
inline constexpr State kEnded = 1 << 14;   // the data has; with a coefficient: within a block
inline constexpr State kNeverIn = 0xffff;  // no state

MILLRACE_HD constexpr State state_of(const Place& place, int overhang) {
  return static_cast<State>(overhang | place.block << 5 | place.coefficient << 8);
}
MILLRACE_HD constexpr State ended_state(const Place& place) {
  return static_cast<State>(kEnded | (place.coefficient == 0 ? 0 : 1) << 8);
}
MILLRACE_HD constexpr Place place_of(State state) {
  return {state >> 5 & 7, state >> 8 & 63};
}
MILLRACE_HD constexpr int overhang_of(State state) {
  return state & 31;
}

// What regions gave, in shared memory.
inline constexpr std::int16_t kNothingBad = 0x7fff;
struct Regions {
  State entered[kMostRegions];
  std::uint16_t tokens[kMostRegions];
  std::uint16_t starts[kMostRegions];  // of blocks
  std::int16_t bad[kMostRegions];      // the first bad block, counted from the first that starts here; or kNothingBad
};

// Where a block starts: the tokens of its region before it, and its DC difference.
struct alignas(4) BlockStart {
  std::uint16_t tokens;
  std::int16_t difference;
};

// A region's scratch.
class Slot {
 public:
  MILLRACE_HD Slot(unsigned char* scratch, std::uint32_t region, std::uint32_t region_bytes)
      : begin_(scratch + std::uint64_t{region} * slot_bytes(region_bytes)), bytes_(slot_bytes(region_bytes)) {}

  MILLRACE_HD Token token(int at) const { return load_aligned<Token>(begin_ + 2 * at); }
  MILLRACE_HD BlockStart start(int at) const { return load_aligned<BlockStart>(start_at(at)); }
  MILLRACE_HD void put_four(int at, std::uint64_t tokens) { store_aligned(begin_ + 2 * at, tokens); }
  MILLRACE_HD void put(int at, Token token) { store_aligned(begin_ + 2 * at, token); }
  MILLRACE_HD void put(int at, BlockStart start) { store_aligned(start_at(at), start); }

 private:
  MILLRACE_HD unsigned char* start_at(int at) const { return begin_ + bytes_ - 4 * (at + 1); }

  unsigned char* begin_;
  std::uint32_t bytes_;
};

// Four tokens a store.
template <class Out>
class TokenPacker {
 public:
  MILLRACE_HD void add(Out& out, int at, Token token) {
    four_ |= std::uint64_t{token} << (at % 4 * 16);
    if (at % 4 != 3) return;
    out.put_four(at - 3, four_);
    four_ = 0;
  }
  // Those since the last four, of `count` in all.
  MILLRACE_HD void flush(Out& out, int count) {
    for (int at = count / 4 * 4; at < count; ++at, four_ >>= 16) out.put(at, static_cast<Token>(four_));
    four_ = 0;
  }

 private:
  std::uint64_t four_ = 0;
};

// The sink of a region's symbols.
class RegionSink {
 public:
  explicit MILLRACE_HD RegionSink(const Slot& slot) : slot_(slot) {}

  MILLRACE_HD bool is_over(const BitReader& reader, const Place&) const { return reader.is_over(); }
  MILLRACE_HD void begin_block(int difference) {
    slot_.put(starts_++, BlockStart{static_cast<std::uint16_t>(tokens_), static_cast<std::int16_t>(difference)});
  }
  MILLRACE_HD void add_token(Token token) { packer_.add(slot_, tokens_++, token); }
  MILLRACE_HD void end_block() {}
  MILLRACE_HD void note_bad(const Place& place) {
    if (bad_ == kNothingBad) bad_ = static_cast<std::int16_t>(starts_ - (place.coefficient == 0 ? 0 : 1));
  }

  MILLRACE_HD void finish(Regions& regions, std::uint32_t region) {
    packer_.flush(slot_, tokens_);
    regions.tokens[region] = static_cast<std::uint16_t>(tokens_);
    regions.starts[region] = static_cast<std::uint16_t>(starts_);
    regions.bad[region] = bad_;
  }

 private:
  Slot slot_;
  TokenPacker<Slot> packer_;
  int tokens_ = 0, starts_ = 0;
  std::int16_t bad_ = kNothingBad;
};

// A thread's regions: shared memory's from `first` on, whose bytes begin at `begin`.
struct RegionRun {
  std::uint32_t first, count;
  std::uint32_t begin, region_bytes;
  unsigned char* scratch;  // the block's
};

MILLRACE_HD inline void clear_region(Regions& regions, std::uint32_t region, State entered) {
  regions.entered[region] = entered;
  regions.tokens[region] = regions.starts[region] = 0;
  regions.bad[region] = kNothingBad;
}

// What a thread found out.
struct RegionsDecoded {
  State left;           // the state after the last region, where `met` is false
  bool met;             // what was decoded before stands from some region on
  std::uint32_t count;  // regions decoded
  std::uint32_t end;    // of the data, as far as seen
};

// From `state` on. REQUIRES: run.begin < scan.end.
MILLRACE_HD inline RegionsDecoded decode_regions(const ScanTables& tables, const ScanBytes& scan, const RegionRun& run,
                                                 State state, Regions& regions) {
  BitReader reader(scan, run.begin < scan.first ? scan.first : run.begin);
  reader.set_boundary(run.begin + run.region_bytes);
  reader.refill();
  Place place = place_of(state);
  bool alive = (state & kEnded) == 0 && reader.take(overhang_of(state));
  RegionsDecoded result{alive ? state : ended_state(place), false, 0, 0};
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const std::uint32_t region = run.first + i;
    if (i > 0 && regions.entered[region] == result.left) {
      result.met = true;
      break;
    }
    clear_region(regions, region, result.left);
    if (!alive) continue;
    if (i > 0) reader.set_boundary(run.begin + (i + 1) * run.region_bytes);
    RegionSink sink(Slot(run.scratch, region, run.region_bytes));
    alive = decode_symbols(tables, reader, place, sink);
    sink.finish(regions, region);
    result.left = alive ? state_of(place, reader.overhang()) : ended_state(place);
    ++result.count;
  }
  result.end = reader.end();
  return result;
}

}  // namespace millrace::kernels::cuda
