#include "kernels/cpu/jpeg/seek_recorder.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/target.h"

namespace millrace::kernels::jpeg {
namespace {

template <typename Number>
void store(std::vector<std::uint8_t>& bytes, std::size_t at, Number number) {
  std::memcpy(bytes.data() + at, &number, sizeof number);
}

constexpr std::int64_t kStep = 32;

// Bit i of the result: byte i of `data` is 0xFF.
std::uint32_t find_ff_plain(const std::uint8_t* data) {
  std::uint32_t found = 0;
  for (int i = 0; i < kStep; ++i) found |= static_cast<std::uint32_t>(data[i] == 0xFF) << i;
  return found;
}

std::int64_t count_ff_plain(const std::uint8_t* data, std::int64_t steps) {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < kStep * steps; ++i) found += data[i] == 0xFF;
  return found;
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) std::uint32_t find_ff_avx2(const std::uint8_t* data) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(-1))));
}

__attribute__((target("avx2"))) std::int64_t count_ff_avx2(const std::uint8_t* data, std::int64_t steps) {
  constexpr std::int64_t kMostInByte = 255;
  const __m256i marker = _mm256_set1_epi8(-1), zero = _mm256_setzero_si256();
  __m256i sums = zero;
  for (std::int64_t i = 0; i < steps;) {
    __m256i found = zero;
    for (const std::int64_t end = std::min(steps, i + kMostInByte); i < end; ++i) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + i * kStep));
      found = _mm256_sub_epi8(found, _mm256_cmpeq_epi8(bytes, marker));
    }
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(found, zero));
  }
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return _mm_cvtsi128_si64(half) + _mm_extract_epi64(half, 1);
}

#endif

// Turns positions, asked for in rising order, into those of the stuffed data: each 0xFF before them had a zero behind
// it. REQUIRES: kStep bytes more than the data can be read.
class Stuffing {
 public:
  Stuffing(const std::uint8_t* data, std::size_t first_byte, Target target)
      : data_(data), added_(static_cast<std::int64_t>(first_byte)) {
#if defined(__x86_64__)
    if (target != Target::kScalar) {
      find_ = find_ff_avx2;
      count_ = count_ff_avx2;
    }
#endif
    static_cast<void>(target);
  }

  std::int64_t stuffed(std::int64_t bit) {
    const std::int64_t byte = bit >> 3, steps = (byte - seen_) / kStep;
    added_ += count_(data_ + seen_, steps);
    seen_ += steps * kStep;
    const std::uint32_t before = (std::uint32_t{1} << (byte - seen_)) - 1;
    return bit + 8 * (added_ + __builtin_popcount(find_(data_ + seen_) & before));
  }

 private:
  const std::uint8_t* data_;
  std::int64_t added_, seen_ = 0;
  std::uint32_t (*find_)(const std::uint8_t*) = find_ff_plain;
  std::int64_t (*count_)(const std::uint8_t*, std::int64_t) = count_ff_plain;
};

// An entry; nullopt: it does not fit.
std::optional<std::uint64_t> pack(std::int64_t mcus, std::int64_t bits, const DcPredictors& predictors) {
  using namespace seek_format;
  if (mcus >> kMcuBits != 0 || bits >> kPositionBits != 0) return std::nullopt;
  auto word = static_cast<std::uint64_t>(mcus) | static_cast<std::uint64_t>(bits) << kMcuBits;
  constexpr int kMost = (1 << (kPredictorBits - 1)) - 1;
  for (std::size_t i = 0; i < predictors.size(); ++i) {
    if (std::abs(predictors[i]) > kMost) return std::nullopt;
    const auto field = static_cast<std::uint64_t>(predictors[i]) & ((std::uint64_t{1} << kPredictorBits) - 1);
    word |= field << (kMcuBits + kPositionBits + kPredictorBits * static_cast<int>(i));
  }
  return word;
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
  places_.assign(1, start);
  levels_.resize(std::max(levels_.size(), static_cast<std::size_t>(blocks)));
  return levels_.data();
}

void SeekRecorder::add(std::int64_t block, std::int64_t bit) {
  const std::int64_t mcu = static_cast<std::uint32_t>(block) / static_cast<std::uint32_t>(grid_.blocks_in_mcu);
  if (mcu > places_.back().mcu) places_.push_back({mcu, bit});
}

// The levels of each component's last block before an MCU behind the start.
DcPredictors SeekRecorder::predictors_at(std::int64_t mcu) const {
  const std::int64_t behind = (mcu - places_.front().mcu) * grid_.blocks_in_mcu;
  DcPredictors predictors{};
  for (int i = 0; i < grid_.components; ++i)
    predictors[static_cast<std::size_t>(i)] = levels_[static_cast<std::size_t>(behind - grid_.components + i)];
  return predictors;
}

bool SeekRecorder::write(IndexBytes known, const std::uint8_t* data, std::size_t first_byte, std::size_t data_bytes,
                         std::uint64_t owner, std::vector<std::uint8_t>& out) const {
  using namespace seek_format;
  const std::size_t kept = std::max(known.size(), kHeadBytes);
  out.resize(kept + (places_.size() - 1) * kEntryBytes);
  if (!known.empty()) std::memcpy(out.data(), known.data(), known.size());
  Stuffing stuffing(data, first_byte, target_);
  std::int64_t before = stuffing.stuffed(places_[0].bit);
  std::size_t size = kept;
  for (std::size_t i = 1; i < places_.size(); ++i) {
    const std::int64_t bit = stuffing.stuffed(places_[i].bit);
    const auto word = pack(places_[i].mcu - places_[i - 1].mcu, bit - before, predictors_at(places_[i].mcu));
    if (!word) break;
    store(out, size, *word);
    size += kEntryBytes;
    before = bit;
  }
  out.resize(size);
  if (size == kept) return false;
  write_head(grid_, data_bytes, out);
  store(out, 0, checksum(out, owner));
  return true;
}

}  // namespace millrace::kernels::jpeg
