// The parts of our JPEG decoder, each instruction set against the plain one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "kernels/cpu/jpeg/dct/fast_dct.h"
#include "kernels/cpu/jpeg/decoder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"

namespace millrace::kernels::jpeg {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

Bytes8 make_file(int h = 2, int v = 2) {
  const auto jpeg = make_jpeg({.pixels = make_pixels(300, 200, 3, 9), .quality = 92, .h_samp = h, .v_samp = v});
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(jpeg.data());
  return {bytes, bytes + jpeg.size()};
}

class Collector : public BlockConsumer {
 public:
  bool take(std::int16_t* blocks, std::int64_t count) override {
    const auto coefficients = static_cast<std::size_t>(count) * kCoefficients;
    all.insert(all.end(), blocks, blocks + coefficients);
    std::memset(blocks, 0, coefficients * sizeof *blocks);
    return true;
  }
  std::vector<std::int16_t> all;
};

struct alignas(64) Coefficients {
  std::int16_t at[kCoefficients];
};

}  // namespace

TEST_CASE("Huffman tables that libjpeg-turbo refuses are refused", "[kernels]") {
  const auto table = std::make_unique<HuffmanTable>();
  const auto dc_table = std::make_unique<HuffmanTable>();
  HuffmanSpec all_ones, too_many, wide_dc, good;
  all_ones.counts[0] = 2;
  too_many.counts[1] = 5;
  wide_dc.counts[1] = 1;
  wide_dc.symbols[0] = 16;
  good.counts[1] = 3;

  REQUIRE_FALSE(build_ac(all_ones, *table));
  REQUIRE_FALSE(build_ac(too_many, *table));
  REQUIRE_FALSE(build_dc(wide_dc, *dc_table));
  REQUIRE(build_ac(good, *table));
}

namespace {

// Codes of any lengths; the code of all ones is left out.
HuffmanSpec draw_codes(std::mt19937& random) {
  HuffmanSpec spec;
  int free = 1, left = 256;
  const int most = 1 << random() % 9;
  for (std::uint8_t& count : spec.counts) {
    free *= 2;
    const int can = std::min({free - 1, left, most});
    count = static_cast<std::uint8_t>(can > 0 && random() % 3 != 0 ? random() % static_cast<unsigned>(can + 1) : 0);
    free -= count;
    left -= count;
  }
  for (std::uint8_t& symbol : spec.symbols) symbol = static_cast<std::uint8_t>(random());
  return spec;
}

// T.81 F.2.2.3, for the code at the top of 16 bits.
LongCode find_plainly(const HuffmanSpec& spec, int bits) {
  int code = 0, at = 0;
  for (int length = 1; length <= 16; ++length, code <<= 1) {
    const int count = spec.counts[static_cast<std::size_t>(length - 1)], found = bits >> (16 - length);
    if (found < code + count)
      return {static_cast<std::uint8_t>(length), spec.symbols[static_cast<std::size_t>(at + found - code)]};
    code += count;
    at += count;
  }
  return {};
}

}  // namespace

TEST_CASE("whatever code an entry leaves out is found behind it, and those that do not exist are not", "[kernels]") {
  std::mt19937 random(5);
  const auto table = std::make_unique<HuffmanTable>();
  int wrong = 0, longest = 0, missing = 0;
  for (int round = 0; round < rounds(200); ++round) {
    const HuffmanSpec spec = draw_codes(random);
    REQUIRE(build_ac(spec, *table));
    for (int bits = 0; bits < 1 << 16; ++bits) {
      const std::uint64_t entry = table->entries[static_cast<std::size_t>(bits >> (16 - kIndexBits))];
      if (field_of(entry, EntryField::kReach) != HuffmanTable::kLeave) continue;
      const int behind = bits & ((1 << (16 - kIndexBits)) - 1),
                further = 63 - static_cast<int>(field_of(entry, EntryField::kShift));
      if (further > 16 - kIndexBits) FAIL("more bits than codes have");
      const std::size_t at =
          field_of(entry, EntryField::kLonger) + static_cast<std::size_t>(behind >> (16 - kIndexBits - further));
      const LongCode found = table->longer.at(at), expected = find_plainly(spec, bits);
      wrong += found.length != expected.length || found.symbol != expected.symbol;
      longest += found.length == 16;
      missing += found.length == 0;
    }
  }
  REQUIRE(wrong == 0);
  REQUIRE(longest > 0);
  REQUIRE(missing > 0);
}

TEST_CASE("a gate holds up each look-up, whatever is in the DC table behind it", "[kernels]") {
  std::mt19937 random(6);
  const auto dc = std::make_unique<HuffmanTable>();
  const McuBlock block{.dc = dc.get(), .ac = dc.get()};
  alignas(kBlockBytes) char memory[2 * kBlockBytes] = {};
  const char* const out = memory + kBlockBytes;
  int held = 0, stopped = 0, wrong = 0;
  for (int round = 0; round < rounds(100); ++round) {
    HuffmanSpec spec = draw_codes(random);
    for (std::uint8_t& symbol : spec.symbols) symbol &= 15;
    REQUIRE(build_dc(spec, *dc));
    for (const Target target : available_targets()) {
      for (int index = 0; index < 1 << kIndexBits; ++index) {
        const std::uint8_t data[64] = {static_cast<std::uint8_t>(index >> (kIndexBits - 8)),
                                       static_cast<std::uint8_t>(index << (16 - kIndexBits))};
        Note note;
        Cursor noting = cursor_at(data, 0, block, out);
        noting.table = gate_before(*dc);
        Cursor stopping = noting;
        noting.notes = &note;

        entropy_kernels(target).run_one(noting, 1);
        entropy_kernels(target).run_one(stopping, 1);

        held += noting.notes == &note + 1 && noting.table == address_of(*dc) && bit_of(note.place, data) == 0;
        stopped += is_gate(stopping.table);
        wrong += noting.last != note.last || stopping.last != note.last || bit_position(noting, data) != 0;
      }
    }
  }
  const int look_ups = rounds(100) * static_cast<int>(available_targets().size()) << kIndexBits;
  REQUIRE(held == look_ups);
  REQUIRE(stopped == look_ups);
  REQUIRE(wrong == 0);
}

TEST_CASE("the blocks of a scan do not depend on how many streams decode it, nor on the instruction set", "[kernels]") {
  for (const int h : {1, 2}) {
    const Bytes8 file = make_file(h, h);
    const auto header = read_header(file);
    REQUIRE(header);
    REQUIRE(header->scan.size() > 12000);  // worth two streams
    const std::int64_t mcus = std::int64_t{(300 + 8 * h - 1) / (8 * h)} * ((200 + 8 * h - 1) / (8 * h));
    const std::int64_t blocks = mcus * (h * h + 2);
    std::vector<std::int16_t> expected;
    for (const Target target : available_targets()) {
      for (const Streams streams : {Streams::kOne, Streams::kTwo}) {
        Collector collector;
        Decoder decoder(target, streams, SegmentPath::kTurns);
        REQUIRE(decoder.decode_blocks(*header, blocks, blocks, collector) == Outcome::kDecoded);
        if (expected.empty()) expected = collector.all;
        REQUIRE(collector.all.size() == static_cast<std::size_t>(blocks) * kCoefficients);
        REQUIRE(collector.all == expected);
      }
    }
  }
}

TEST_CASE("the inverse DCT has the same samples with every instruction set", "[kernels]") {
  std::mt19937 random(2);
  int ordinary = 0;
  for (int round = 0; round < 4000; ++round) {
    std::array<std::uint16_t, kCoefficients> quant{};
    for (auto& value : quant) value = static_cast<std::uint16_t>(1 + random() % (round % 7 == 0 ? 60000 : 40));
    const Dequantiser dequantiser = make_dequantiser(quant);
    const int blocks = 1 + static_cast<int>(random() % 9);
    std::vector<Coefficients> input(static_cast<std::size_t>(blocks));
    for (Coefficients& block : input) {
      const unsigned few = random() % 64, range = 1 + random() % (round % 5 == 0 ? 3000 : 40);
      for (unsigned i = 0; i < kCoefficients; ++i)
        block.at[i] = static_cast<std::int16_t>(i <= few ? random() % (2 * range + 1) - range : 0);
    }
    std::vector<std::uint8_t> expected;
    bool expected_ordinary = false;
    for (const Target target : available_targets()) {
      std::vector<Coefficients> work = input;
      std::vector<std::uint8_t> out(input.size() * kCoefficients);
      std::vector<BlockJob> jobs;
      for (std::size_t i = 0; i < work.size(); ++i)
        jobs.push_back({work[i].at, &dequantiser, out.data() + i * kBlock, std::ptrdiff_t{kBlock} * blocks});
      const bool done = inverse_dct(target).transform(jobs.data(), blocks);
      if (target == Target::kScalar) {
        expected = out;
        expected_ordinary = done;
        ordinary += done;
        continue;
      }
      REQUIRE(done == expected_ordinary);
      if (!done) continue;
      REQUIRE(out == expected);
      for (const Coefficients& block : work)
        REQUIRE(std::count(block.at, block.at + kCoefficients, 0) == kCoefficients);
    }
  }
  REQUIRE(ordinary > 1000);
  REQUIRE(ordinary < 4000);
}

TEST_CASE("the number without a magnitude in 16 bits is refused by the inverse DCT, wherever it stands", "[kernels]") {
  std::array<std::uint16_t, kCoefficients> quant;
  quant.fill(1);
  Dequantiser dequantiser = make_dequantiser(quant);
  add_fast_factors(quant, dequantiser);
  for (const Target target : available_targets()) {
    for (std::size_t at = 0; at < kCoefficients; ++at) {
      alignas(64) std::int16_t block[kCoefficients] = {};
      std::uint8_t out[kCoefficients];
      block[at] = INT16_MIN;
      block[(at + 1) % kCoefficients] = 1;
      const BlockJob job{block, &dequantiser, out, 8};
      INFO(name_of(target) << " coefficient " << at);
      REQUIRE_FALSE(inverse_dct(target).transform(&job, 1));
      REQUIRE_FALSE(inverse_dct(target).transform_fast(&job, 1));
    }
  }
}

TEST_CASE("the largest blocks that are ordinary have the same samples with every instruction set", "[kernels]") {
  constexpr int kMostInColumn = 2944;
  std::mt19937 random(4);
  std::array<std::uint16_t, kCoefficients> quant{};
  quant.fill(1);
  const Dequantiser dequantiser = make_dequantiser(quant);
  for (int round = 0; round < 3000; ++round) {
    int at[kBlock][kBlock] = {};  // column by column
    for (auto& column : at) {
      const bool one_sign = random() % 2 == 0;
      const auto others = 1 + random() % kBlock;
      for (int left = kMostInColumn, i = 0; left > 0; ++i) {
        const int part = i == 20 ? left : static_cast<int>(random() % static_cast<unsigned>(left) + 1);
        int& value = column[i == 20 ? 0 : random() % others];
        const bool negative = value != 0 ? value < 0 : !one_sign && random() % 2 == 0;
        value += negative ? -part : part;
        left -= part;
      }
    }
    Coefficients input{};
    for (std::size_t i = 0; i < kCoefficients; ++i)
      input.at[i] = static_cast<std::int16_t>(at[kNatural[i] % kBlock][kNatural[i] / kBlock]);
    std::vector<std::uint8_t> expected;
    for (const Target target : available_targets()) {
      CAPTURE(name_of(target), round);
      Coefficients work = input;
      std::vector<std::uint8_t> out(kCoefficients);
      const BlockJob job{work.at, &dequantiser, out.data(), kBlock};
      REQUIRE(inverse_dct(target).transform(&job, 1));
      if (target == Target::kScalar) expected = out;
      REQUIRE(out == expected);
    }
  }
}

TEST_CASE("chroma and colour rows have the same samples with every instruction set", "[kernels]") {
  std::mt19937 random(3);
  const PixelRowKernels& plain = scalar_pixel_row_kernels();
  for (int count = 1; count < 150; ++count) {
    std::vector<std::uint8_t> a(400), b(400), c(400);
    for (auto* const row : {&a, &b, &c}) {
      for (std::uint8_t& sample : *row)
        sample = static_cast<std::uint8_t>(random() % 7 ? random() : random() % 2 * 255);
    }
    const std::uint8_t *const near = a.data() + 64, *const far = b.data() + 64;
    for (const Target target : available_targets()) {
      const PixelRowKernels& kernels = pixel_row_kernels(target);
      const auto check = [&](std::size_t bytes, auto run) {
        std::vector<std::uint8_t> expected(1000), out(1000);
        run(plain, expected.data());
        run(kernels, out.data());
        REQUIRE(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes), expected.begin()));
        return out;
      };
      CAPTURE(name_of(target), count);
      const auto wide = static_cast<std::size_t>(count);
      check(2 * wide, [&](const PixelRowKernels& by, std::uint8_t* out) { by.widen(near, count, out); });
      check(wide, [&](const PixelRowKernels& by, std::uint8_t* out) { by.blend_only(near, far, count, 2, out); });
      check(2 * wide, [&](const PixelRowKernels& by, std::uint8_t* out) {
        std::vector<std::int16_t> sums(400);
        by.blend(near, far, count, sums.data() + 64);
        by.widen_sums(sums.data() + 64, count, out);
      });
      const auto pixels = check(
          3 * wide, [&](const PixelRowKernels& by, std::uint8_t* out) { by.to_rgb(near, far, c.data(), count, out); });
      REQUIRE(std::count(pixels.begin() + 3 * count, pixels.end(), 0) == 1000 - 3 * count);  // nothing behind them
    }
  }
}

TEST_CASE("YCbCr becomes RGB as the standard's formula says", "[kernels]") {
  for (int cb = 0; cb < 256; cb += 5) {
    for (int cr = 0; cr < 256; cr += 3) {
      const auto blue = static_cast<std::uint8_t>(cb), red = static_cast<std::uint8_t>(cr), luma = std::uint8_t{120};
      std::uint8_t pixel[3];
      scalar_pixel_row_kernels().to_rgb(&luma, &blue, &red, 1, pixel);

      const double exact[3] = {120 + 1.402 * (cr - 128), 120 - 0.344136286 * (cb - 128) - 0.714136286 * (cr - 128),
                               120 + 1.772 * (cb - 128)};
      for (int i = 0; i < 3; ++i) REQUIRE(std::abs(std::clamp(exact[i], 0.0, 255.0) - pixel[i]) < 0.51);
    }
  }
}

}  // namespace millrace::kernels::jpeg
