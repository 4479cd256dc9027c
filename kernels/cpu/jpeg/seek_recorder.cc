#include "kernels/cpu/jpeg/seek_recorder.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/base/target.h"

namespace millrace::kernels::jpeg {
namespace {

template <typename Number>
void store(std::vector<std::uint8_t>& bytes, std::size_t at, Number number) {
  std::memcpy(bytes.data() + at, &number, sizeof number);
}

constexpr std::size_t kLot = 64;  // bytes of data

// Counts 0xFF.
struct FfCounter {
  // Those before each lot.
  void (*before)(const std::uint8_t* data, std::span<std::uint32_t> lots);
  // Those among the first bytes of a lot.
  std::uint32_t (*within)(const std::uint8_t* lot, std::size_t bytes);
};

std::uint32_t count_within(const std::uint8_t* lot, std::size_t bytes) {
  return static_cast<std::uint32_t>(std::count(lot, lot + bytes, std::uint8_t{0xFF}));
}

void count_before(const std::uint8_t* data, std::span<std::uint32_t> lots) {
  std::uint32_t before = 0;
  for (std::uint32_t& lot : lots) {
    lot = before;
    before += count_within(data, kLot);
    data += kLot;
  }
}

#if defined(__x86_64__)

// Bit i of the result: byte i is 0xFF.
__attribute__((target("avx2"))) inline std::uint32_t find_half_avx2(const std::uint8_t* half) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(half));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(-1))));
}

__attribute__((target("avx2"))) inline std::uint64_t find_avx2(const std::uint8_t* lot) {
  return find_half_avx2(lot) | std::uint64_t{find_half_avx2(lot + kLot / 2)} << 32;
}

__attribute__((target("avx2,popcnt"))) std::uint32_t count_within_avx2(const std::uint8_t* lot, std::size_t bytes) {
  const std::uint64_t found = find_avx2(lot) & ((std::uint64_t{1} << bytes) - 1);
  return static_cast<std::uint32_t>(__builtin_popcountll(found));
}

__attribute__((target("avx2,popcnt"))) void count_before_avx2(const std::uint8_t* data, std::span<std::uint32_t> lots) {
  std::uint32_t before = 0;
  for (std::uint32_t& lot : lots) {
    lot = before;
    before += static_cast<std::uint32_t>(__builtin_popcountll(find_avx2(data)));
    data += kLot;
  }
}

__attribute__((target("avx512f,avx512bw"))) inline std::uint64_t find_avx512(const std::uint8_t* lot) {
  return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(lot), _mm512_set1_epi8(-1));
}

__attribute__((target("avx512f,avx512bw,popcnt"))) std::uint32_t count_within_avx512(const std::uint8_t* lot,
                                                                                     std::size_t bytes) {
  const std::uint64_t found = find_avx512(lot) & ((std::uint64_t{1} << bytes) - 1);
  return static_cast<std::uint32_t>(__builtin_popcountll(found));
}

__attribute__((target("avx512f,avx512bw,popcnt"))) void count_before_avx512(const std::uint8_t* data,
                                                                            std::span<std::uint32_t> lots) {
  std::uint32_t before = 0;
  for (std::uint32_t& lot : lots) {
    lot = before;
    before += static_cast<std::uint32_t>(__builtin_popcountll(find_avx512(data)));
    data += kLot;
  }
}

#endif

FfCounter ff_counter(Target target) {
#if defined(__x86_64__)
  if (target >= Target::kAvx512Bw) return {count_before_avx512, count_within_avx512};
  if (target != Target::kScalar) return {count_before_avx2, count_within_avx2};
#endif
  static_cast<void>(target);
  return {count_before, count_within};
}

// Turns positions up to `last_bit` into those of the stuffed data: each 0xFF before them had a zero after it.
class Stuffing {
 public:
  Stuffing(const std::uint8_t* data, std::size_t first_byte, std::int64_t last_bit, Target target,
           std::vector<std::uint32_t>& before)
      : data_(data), first_byte_(static_cast<std::int64_t>(first_byte)), counter_(ff_counter(target)), before_(before) {
    const std::size_t lots = static_cast<std::size_t>(last_bit >> 3) / kLot + 1;
    before.resize(std::max(before.size(), lots));
    counter_.before(data, std::span(before).first(lots));
  }

  std::int64_t stuffed(std::int64_t bit) const {
    const auto byte = static_cast<std::size_t>(bit >> 3), lot = byte / kLot;
    return bit + 8 * (first_byte_ + before_[lot] + counter_.within(data_ + lot * kLot, byte % kLot));
  }

 private:
  const std::uint8_t* const data_;
  const std::int64_t first_byte_;
  const FfCounter counter_;
  const std::vector<std::uint32_t>& before_;
};

// An entry; nullopt: it does not fit.
std::optional<std::uint64_t> pack(std::int64_t mcus, std::int64_t bits, const DcPredictors& predictors) {
  using namespace seek_format;
  bool fits = mcus >> kMcuBits == 0 && bits >> kPositionBits == 0;
  auto word = static_cast<std::uint64_t>(mcus) | static_cast<std::uint64_t>(bits) << kMcuBits;
  constexpr int kMost = (1 << (kPredictorBits - 1)) - 1;
  for (std::size_t i = 0; i < predictors.size(); ++i) {
    fits &= std::abs(predictors[i]) <= kMost;
    const auto field = static_cast<std::uint64_t>(predictors[i]) & ((std::uint64_t{1} << kPredictorBits) - 1);
    word |= field << (kMcuBits + kPositionBits + kPredictorBits * static_cast<int>(i));
  }
  return fits ? std::optional(word) : std::nullopt;
}

void write_head(const SeekGrid& grid, std::size_t data_bytes, std::vector<std::uint8_t>& out) {
  using namespace seek_format;
  store(out, 8,
        std::array{kVersion, static_cast<std::uint8_t>(grid.components), static_cast<std::uint8_t>(grid.blocks_in_mcu),
                   std::uint8_t{0}});
  store(out, 12, static_cast<std::uint16_t>(grid.columns));
  store(out, 14, static_cast<std::uint16_t>(grid.rows));
  store(out, 16, std::uint64_t{(out.size() - kHeadBytes) / kEntryBytes});
  store(out, 24, std::uint64_t{data_bytes});
}

}  // namespace

std::int16_t* SeekRecorder::begin(const SeekGrid& grid, const SeekPlace& start, std::int64_t blocks) {
  grid_ = grid;
  places_.assign(1, {start.mcu * grid.blocks_in_mcu, start.bit});
  levels_.resize(std::max(levels_.size(), static_cast<std::size_t>(blocks)));
  return levels_.data();
}

// The levels of each component's last block before an MCU after the start.
DcPredictors SeekRecorder::predictors_at(std::int64_t block) const {
  const std::int16_t* const level = levels_.data() + (block - places_.front().block) - grid_.components;
  DcPredictors predictors{};
  for (int i = 0; i < grid_.components; ++i) predictors[static_cast<std::size_t>(i)] = level[i];
  return predictors;
}

bool SeekRecorder::write(IndexBytes known, const Source& source, std::uint64_t owner, std::vector<std::uint8_t>& out) {
  using namespace seek_format;
  const std::size_t kept = std::max(known.size(), kHeadBytes);
  out.resize(kept + (places_.size() - 1) * kEntryBytes);
  if (!known.empty()) std::memcpy(out.data(), known.data(), known.size());
  const Stuffing stuffing(source.unstuffed, source.first_byte, last().bit, target_, before_);
  const auto in_mcu = static_cast<std::uint32_t>(grid_.blocks_in_mcu);
  std::int64_t before = stuffing.stuffed(places_[0].bit);
  std::size_t size = kept;
  for (std::size_t i = 1; i < places_.size(); ++i) {
    const std::int64_t bit = stuffing.stuffed(places_[i].bit);
    const auto blocks = static_cast<std::uint32_t>(places_[i].block - places_[i - 1].block);
    const auto word = pack(blocks / in_mcu, bit - before, predictors_at(places_[i].block));
    if (!word) break;
    store(out, size, *word);
    size += kEntryBytes;
    before = bit;
  }
  out.resize(size);
  if (size == kept) return false;
  write_head(grid_, source.data_bytes, out);
  if (known.empty()) store(out, 32, digest(source.header, source.data_bytes, owner));
  store(out, 0, checksum(out, owner));
  return true;
}

}  // namespace millrace::kernels::jpeg
