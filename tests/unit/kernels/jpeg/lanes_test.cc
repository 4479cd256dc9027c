// Many pieces of a scan in the lanes of a vector, against the same pieces symbol by symbol.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>

#include "kernels/cpu/jpeg/aligned.h"
#include "kernels/cpu/jpeg/entropy/entropy_lanes.h"
#include "kernels/jpeg/unstuff.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"

namespace millrace::kernels::jpeg {
namespace {

bool have_lanes() {
  if (is_available(Target::kAvx512Bw)) return true;
  skip_loudly("instructions: this processor lacks avx512bw");
  return false;
}

// A scan that can be started at any of its MCUs.
struct Scan {
  std::vector<std::uint8_t> data;
  std::unique_ptr<HuffmanTable[]> tables = std::make_unique<HuffmanTable[]>(8);
  std::vector<McuBlock> mcu;
  std::vector<std::int64_t> places;  // of MCUs, and the end
};

// Symbol by symbol, as T.81 says.
void decode_plainly(const std::uint8_t* data, LaneSegment& segment) {
  Cursor cursor = cursor_at(data, segment.bit, *segment.first, segment.out);
  const std::uintptr_t stop = cursor.last + static_cast<std::uintptr_t>(segment.blocks) * kBlockBytes;
  while (cursor.last < stop) scalar_entropy_kernels().take_one(cursor);
  segment.end_bit = bit_position(cursor, data);
  segment.bad = cursor.bad != 0;
}

Scan make_scan(int components, int h, int v, int quality) {
  const auto file =
      make_jpeg({.pixels = make_pixels(240, 160, components, 5), .quality = quality, .h_samp = h, .v_samp = v});
  const auto header = read_header({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()});
  REQUIRE(header);
  Scan scan;
  for (int i = 0; i < header->components; ++i) {
    const Component& component = header->component[static_cast<std::size_t>(i)];
    HuffmanTable &dc = scan.tables[component.dc], &ac = scan.tables[4 + component.ac];
    REQUIRE(build_dc(*header->dc[component.dc], dc));
    REQUIRE(build_ac(*header->ac[component.ac], ac));
    scan.mcu.resize(scan.mcu.size() + static_cast<std::size_t>(component.h * component.v), {.dc = &dc, .ac = &ac});
  }
  link(scan.mcu);
  scan.data.resize(header->scan.size() + kUnstuffSlack + lane_reach(1000));
  unstuff(header->scan, scan.data.data(), Target::kScalar);
  const int width = 8 * (components == 1 ? 1 : h), height = 8 * (components == 1 ? 1 : v);
  const int mcus = ((240 + width - 1) / width) * ((160 + height - 1) / height);
  AlignedBuffer memory;
  char* const out = reinterpret_cast<char*>(memory.reserve((scan.mcu.size() + 1) * kBlockBytes));
  scan.places.push_back(0);
  for (int i = 0; i < mcus; ++i) {
    LaneSegment segment{
        .bit = scan.places.back(), .blocks = static_cast<int>(scan.mcu.size()), .first = scan.mcu.data(), .out = out};
    decode_plainly(scan.data.data(), segment);
    REQUIRE_FALSE(segment.bad);
    scan.places.push_back(segment.end_bit);
  }
  return scan;
}

// Segments with memory of their own, the same for each decoder.
struct Work {
  explicit Work(std::vector<LaneSegment> wanted) : segments(std::move(wanted)) {
    for (const LaneSegment& segment : segments) bytes += static_cast<std::size_t>(segment.blocks + 1) * kBlockBytes;
    out = reinterpret_cast<char*>(memory.reserve(bytes));
    char* at = out;
    for (LaneSegment& segment : segments) {
      segment.out = at;
      at += (segment.blocks + 1) * kBlockBytes;
    }
  }
  std::vector<LaneSegment> segments;
  AlignedBuffer memory;
  std::size_t bytes = 0;
  char* out = nullptr;
};

// How many of the segments are bad.
std::ptrdiff_t require_equal(const std::vector<std::uint8_t>& data, const std::vector<LaneSegment>& segments) {
  Work plain(segments), lanes(segments);
  for (LaneSegment& segment : plain.segments) decode_plainly(data.data(), segment);
  decode_lanes_avx512(data.data(), lanes.segments);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    REQUIRE(lanes.segments[i].end_bit == plain.segments[i].end_bit);
    REQUIRE(lanes.segments[i].bad == plain.segments[i].bad);
  }
  REQUIRE(std::memcmp(plain.out, lanes.out, plain.bytes) == 0);
  return std::count_if(plain.segments.begin(), plain.segments.end(), [](const auto& segment) { return segment.bad; });
}

}  // namespace

TEST_CASE("segments decoded in vector lanes have the blocks and ends that single streams give", "[kernels]") {
  if (!have_lanes()) return;
  struct Kind {
    int components, h, v;
  };
  std::mt19937 random(1);
  for (const Kind kind : {Kind{1, 1, 1}, Kind{3, 1, 1}, Kind{3, 2, 1}, Kind{3, 1, 2}, Kind{3, 2, 2}}) {
    for (const int quality : {30, 90, 100}) {
      const Scan scan = make_scan(kind.components, kind.h, kind.v, quality);
      const std::size_t mcus = scan.places.size() - 1;
      for (const std::size_t most : {std::size_t{1}, std::size_t{7}, mcus}) {
        std::vector<LaneSegment> segments;
        for (std::size_t at = 0; at < mcus;) {
          const std::size_t length = std::min(mcus - at, 1 + random() % most);
          segments.push_back(
              {.bit = scan.places[at], .blocks = static_cast<int>(length * scan.mcu.size()), .first = scan.mcu.data()});
          at += length;
        }
        CAPTURE(kind.components, kind.h, kind.v, quality, segments.size());

        REQUIRE(require_equal(scan.data, segments) == 0);
      }
    }
  }
}

TEST_CASE("vector lanes find the same damage in random data as single streams", "[kernels]") {
  if (!have_lanes()) return;
  std::mt19937 random(2);
  std::ptrdiff_t bad = 0, all = 0;
  for (const int quality : {50, 100}) {
    Scan scan = make_scan(3, 2, 2, quality);
    for (int round = 0; round < 60; ++round) {
      std::vector<std::uint8_t> data(400 + lane_reach(12));
      for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(round % 3 == 0 ? random() | random() : random());
      std::vector<LaneSegment> segments(1 + random() % 40);
      for (LaneSegment& segment : segments) {
        segment = {.bit = static_cast<std::int64_t>(random() % 3200),
                   .blocks = 1 + static_cast<int>(random() % 12),
                   .first = &scan.mcu[random() % scan.mcu.size()]};
      }
      all += static_cast<std::ptrdiff_t>(segments.size());
      bad += require_equal(data, segments);
    }
  }
  REQUIRE(bad > all / 20);
  REQUIRE(bad < all);
}

}  // namespace millrace::kernels::jpeg
