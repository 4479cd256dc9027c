#include "daemon/cache/policy/first_accesses.h"

namespace millrace {
namespace {

// Nanoseconds a byte to begin with, rows at once and in passes: measured on quiet AVX-512 cores by photographs of 500
// pixels a side, JPEG and WebP of quality 85 to 90, with the training recipe, so that on most hosts too little is said to
// be saved, and not too much. Interlaced PNG was not measured: as the others.
struct Start {
  ImageFormat format;
  std::uint64_t at_once, in_passes;
};
constexpr std::array<Start, kImageFormats> kStart{{
    {ImageFormat::kJpeg, 4, 40},
    {ImageFormat::kPng, 13, 13},
    {ImageFormat::kWebp, 55, 55},
    {ImageFormat::kPacked, 2, 2},
    {ImageFormat::kPnm, 1, 1},
    {ImageFormat::kBmp, 1, 1},
    {ImageFormat::kGif, 13, 13},
    {ImageFormat::kTiff, 5, 5},
    {ImageFormat::kAvif, 100, 100},
    {ImageFormat::kHeic, 300, 300},
    {ImageFormat::kL3, 3, 3},
}};
constexpr std::uint64_t kStartBytes = 256ULL << 10U;  // that it counts for: two photographs
constexpr std::uint64_t kManyBytes = 256ULL << 20U;

}  // namespace

FirstAccesses::FirstAccesses() {
  for (const Start& start : kStart) {
    for (const bool passes : {false, true}) {
      Sum& sum = sums_[kind_of({.format = start.format, .has = {.passes = passes}})];
      sum.bytes = kStartBytes;
      sum.microseconds = kStartBytes * (passes ? start.in_passes : start.at_once) / 1000;
    }
  }
}

std::size_t FirstAccesses::kind_of(const SourceInfo& info) {
  static_assert(kKinds == 2 * kStart.size());
  return 2 * static_cast<std::size_t>(info.format) + (info.has.passes ? 1 : 0);
}

void FirstAccesses::add(const SourceInfo& info, std::uint64_t file_bytes, std::chrono::microseconds took) {
  Sum& sum = sums_[kind_of(info)];
  sum.microseconds.fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
  if (sum.bytes.fetch_add(file_bytes, std::memory_order_relaxed) + file_bytes < kManyBytes) return;
  sum.bytes.store(sum.bytes.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
  sum.microseconds.store(sum.microseconds.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
}

std::chrono::microseconds FirstAccesses::expected(const SourceInfo& info, std::uint64_t file_bytes) const {
  const Sum& sum = sums_[kind_of(info)];
  const double a_byte = static_cast<double>(sum.microseconds.load(std::memory_order_relaxed)) /
                        static_cast<double>(sum.bytes.load(std::memory_order_relaxed));
  return std::chrono::microseconds(static_cast<std::int64_t>(a_byte * static_cast<double>(file_bytes)));
}

}  // namespace millrace
