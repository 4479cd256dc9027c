#include "kernels/jpeg/seek_index.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/hash.h"

namespace millrace::kernels::jpeg {
namespace {

template <typename Number>
Number load(IndexBytes bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

int divide_up(int value, int by) {
  return (value + by - 1) / by;
}

// `bits` bits of `word` from `first` on.
std::int64_t field(std::uint64_t word, int first, int bits) {
  return static_cast<std::int64_t>(word << (64 - first - bits) >> (64 - bits));
}
int signed_field(std::uint64_t word, int first, int bits) {
  return static_cast<int>(static_cast<std::int64_t>(word << (64 - first - bits)) >> (64 - bits));
}

SeekPlace next_place(const SeekPlace& before, std::uint64_t word) {
  using namespace seek_format;
  SeekPlace place{before.mcu + field(word, 0, kMcuBits), before.bit + field(word, kMcuBits, kPositionBits)};
  for (int i = 0; i < 3; ++i)
    place.predictors[static_cast<std::size_t>(i)] =
        signed_field(word, kMcuBits + kPositionBits + i * kPredictorBits, kPredictorBits);
  return place;
}

}  // namespace

SeekGrid seek_grid(const Header& header) {
  const int h = header.component[0].h, v = header.component[0].v;
  return {.columns = divide_up(header.size.width, kBlock * h),
          .rows = divide_up(header.size.height, kBlock * v),
          .blocks_in_mcu = header.components == 1 ? 1 : h * v + 2,
          .components = header.components};
}

std::uint64_t seek_format::checksum(IndexBytes bytes, std::uint64_t owner) {
  return xxh3_64(bytes.subspan(sizeof(std::uint64_t)), owner);
}

std::uint64_t seek_format::digest(const Header& header, std::size_t data_bytes, std::uint64_t owner) {
  std::uint64_t sum = ~owner;
  for (std::size_t i = 0; i < static_cast<std::size_t>(header.components); ++i) {
    for (const auto* const table : {&header.dc[header.component[i].dc], &header.ac[header.component[i].ac]})
      sum = xxh3_64((*table)->symbols, xxh3_64((*table)->counts, sum));
  }
  return xxh3_64(header.scan.first(data_bytes + kMarkerBytes), sum);
}

bool SeekIndex::read(IndexBytes bytes_untrusted, const Header& header, std::uint64_t owner) {
  using namespace seek_format;
  if (bytes_untrusted.size() < kHeadBytes) return false;
  if (load<std::uint64_t>(bytes_untrusted, 0) != checksum(bytes_untrusted, owner)) return false;
  grid_ = seek_grid(header);
  if (bytes_untrusted[8] != kVersion || bytes_untrusted[11] != 0) return false;
  const SeekGrid grid{.columns = load<std::uint16_t>(bytes_untrusted, 12),
                      .rows = load<std::uint16_t>(bytes_untrusted, 14),
                      .blocks_in_mcu = bytes_untrusted[10],
                      .components = bytes_untrusted[9]};
  const auto data_bytes = load<std::uint64_t>(bytes_untrusted, 24);
  if (grid != grid_ || header.scan.size() < kMarkerBytes || data_bytes > header.scan.size() - kMarkerBytes)
    return false;
  if (load<std::uint64_t>(bytes_untrusted, 32) != digest(header, data_bytes, owner)) return false;
  data_bytes_ = static_cast<std::int64_t>(data_bytes);
  const IndexBytes entries = bytes_untrusted.subspan(kHeadBytes);
  const auto count = load<std::uint64_t>(bytes_untrusted, 16);
  return count >= 1 && entries.size() % kEntryBytes == 0 && count == entries.size() / kEntryBytes &&
         read_places(entries);
}

bool SeekIndex::read_places(IndexBytes entries) {
  places_.assign(1, {});
  widest_ = 0;
  for (std::size_t at = 0; at < entries.size(); at += seek_format::kEntryBytes) {
    const SeekPlace place = next_place(places_.back(), load<std::uint64_t>(entries, at));
    const std::int64_t mcus = place.mcu - places_.back().mcu;
    if (mcus == 0) return false;
    widest_ = std::max(widest_, static_cast<int>(mcus));
    places_.push_back(place);
  }
  return places_.back().mcu <= grid_.mcus() && places_.back().bit <= 8 * data_bytes_;
}

}  // namespace millrace::kernels::jpeg
