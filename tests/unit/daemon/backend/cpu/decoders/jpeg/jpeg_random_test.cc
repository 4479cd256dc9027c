// Our JPEG decoder and libjpeg-turbo on random streams, whole and damaged: the same pixels, the same verdicts.
#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/stored_size.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {
namespace {

kernels::Size random_size_of(const JpegStream& stream) {
  return {stream.width, stream.height};
}

// With our decoder and without it: what a sample sees.
void check_random_outcome(ByteView file, kernels::Size size, const kernels::Box& box) {
  const LibjpegOutcome expected(file, size, box);
  PixelBuffer buffer;
  for (const auto& decoder : decoders())
    REQUIRE(expected.agrees(decode_jpeg(request_for(file, size, box), buffer, *decoder)));
}

void check_random_stream(const JpegDraw& draw, std::mt19937& random, int boxes) {
  const JpegStream stream = draw_jpeg(draw, random);
  const JpegFile file = write_jpeg(stream);
  for (int i = 0; i < boxes; ++i) {
    const kernels::Box box = i == 0 ? whole(random_size_of(stream)) : random_box(random, random_size_of(stream));
    const int taken = check_all(file.bytes, random_size_of(stream), box);
    REQUIRE(taken == (is_plain(stream) ? static_cast<int>(decoders().size()) : 0));
  }
}

}  // namespace

TEST_CASE("random streams have libjpeg-turbo's pixels in any box", "[backend]") {
  std::mt19937 random(31);
  for (int i = 0; i < rounds(200); ++i) {
    CAPTURE(i);
    check_random_stream({}, random, 4);
  }
}

TEST_CASE("random streams of any shape have libjpeg-turbo's pixels", "[backend]") {
  std::mt19937 random(32);
  constexpr kernels::Size kSizes[] = {{1, 1},   {2, 1},   {1, 2},    {5, 5},    {8, 8},     {9, 17},   {16, 16},
                                      {17, 33}, {33, 15}, {4097, 3}, {3, 4097}, {300, 200}, {700, 50}, {50, 700}};
  for (const kernels::Size size : kSizes) {
    for (int i = 0; i < rounds(5); ++i) {
      CAPTURE(size.width, size.height, i);
      check_random_stream({.width = size.width, .height = size.height}, random, 3);
    }
  }
}

TEST_CASE("coefficients that no image of 8-bit samples has are libjpeg-turbo's affair", "[backend]") {
  std::mt19937 random(33);
  for (int i = 0; i < rounds(100); ++i) {
    const JpegStream stream = draw_jpeg({.range = JpegDraw::Range::kWild}, random);
    const JpegFile file = write_jpeg(stream);
    CAPTURE(i);
    check_all(file.bytes, random_size_of(stream), whole(random_size_of(stream)));
    check_random_outcome(file.bytes, random_size_of(stream), random_box(random, random_size_of(stream)));
  }
}

TEST_CASE("DC coefficients that leave sixteen bits are libjpeg-turbo's affair", "[backend]") {
  for (const std::vector<int>& differences : {std::vector{-32767, -1, 32767},
                                              {32767, 1, -32767},
                                              {32767, 32767, 2, 5},
                                              {-32767, -32767, -2, -5},
                                              {16384, 16384}}) {
    JpegStream stream{.width = 64, .height = 64, .components = {{}}};
    stream.quant[0].emplace().values.fill(1);
    stream.blocks.resize(64);
    for (std::size_t i = 0; i < differences.size(); ++i)
      stream.blocks[20 + i][0] = static_cast<std::int16_t>(differences[i]);
    const JpegHistogram histogram = count_symbols(stream);
    stream.dc[0] = optimal_code(histogram.dc[0]);
    stream.ac[0] = optimal_code(histogram.ac[0]);
    const JpegFile file = write_jpeg(stream);
    CAPTURE(differences);
    REQUIRE(check_all(file.bytes, random_size_of(stream), whole(random_size_of(stream))) == 0);
    REQUIRE(check_all(file.bytes, random_size_of(stream), {0, 0, 64, 16}) > 0);
    check_random_outcome(file.bytes, random_size_of(stream), whole(random_size_of(stream)));
  }
}

TEST_CASE("quantisation factors that leave sixteen bits with a sign are libjpeg-turbo's affair", "[backend]") {
  for (const int factor : {32767, 32768, 40000, 65000, 65535}) {
    JpegStream stream{.width = 64, .height = 64, .components = {{}}};
    stream.quant[0].emplace().wide = true;
    stream.quant[0]->values.fill(static_cast<std::uint16_t>(factor));
    stream.blocks.resize(64);
    for (std::size_t i = 1; i < 64; ++i) stream.blocks[i][i] = static_cast<std::int16_t>(i % 2 == 0 ? 1 : -1);
    stream.dc[0] = default_dc_code();
    stream.ac[0] = default_ac_code();
    const JpegFile file = write_jpeg(stream);
    CAPTURE(factor);
    for (int y = 0; y < 64; y += 8) {
      for (int x = y == 0 ? 8 : 0; x < 64; x += 8)
        REQUIRE(check_all(file.bytes, random_size_of(stream), {x, y, 8, 8}) == 0);
    }
    REQUIRE(check_all(file.bytes, random_size_of(stream), {0, 0, 8, 8}) > 0);
  }
}

TEST_CASE("streams with any factors, components and restarts have libjpeg-turbo's outcome", "[backend]") {
  std::mt19937 random(34);
  int taken = 0;
  for (int i = 0; i < rounds(200); ++i) {
    const JpegStream stream = draw_jpeg({.kind = JpegDraw::Kind::kAny}, random);
    const JpegFile file = write_jpeg(stream);
    CAPTURE(i);
    taken += check_all(file.bytes, random_size_of(stream), whole(random_size_of(stream))) > 0;
    check_random_outcome(file.bytes, random_size_of(stream), random_box(random, random_size_of(stream)));
  }
  REQUIRE(taken > 10);
  REQUIRE(taken < rounds(150));
}

TEST_CASE("every kind of damage to a random stream has libjpeg-turbo's outcome", "[backend]") {
  std::mt19937 random(35);
  for (int kind = 0; kind < kJpegDamages; ++kind) {
    int taken = 0;
    for (int i = 0; i < rounds(60); ++i) {
      const bool large = i % 8 == 0;  // for two streams
      const JpegDraw draw{.kind = i % 5 == 4 ? JpegDraw::Kind::kAny : JpegDraw::Kind::kPlain,
                          .width = large ? 150 : 0,
                          .height = large ? 110 : 0,
                          .density = large ? 400 : -1,
                          .restart_interval = i % 3 == 0 ? -1 : 0};
      const JpegStream stream = draw_jpeg(draw, random);
      const File file = damage(write_jpeg(stream), static_cast<JpegDamage>(kind), random);
      const auto found = stored_size(file);
      const kernels::Size size = found && found->width > 0 && found->height > 0 ? *found : random_size_of(stream);
      if (std::int64_t{size.width} * size.height > 1 << 20) continue;
      const kernels::Box box = i % 2 == 0 ? whole(size) : random_box(random, size);
      CAPTURE(kind, i);
      taken += check_all(file, size, box) > 0;
      check_random_outcome(file, size, box);
    }
    INFO("damage " << kind << ": our decoder took " << taken);
    const auto damage_kind = static_cast<JpegDamage>(kind);
    if (damage_kind == JpegDamage::kRestart) continue;  // hardly ever: outside of what the box needs
    REQUIRE((damage_kind == JpegDamage::kCut ? taken == 0 : taken > 0));
  }
}

}  // namespace millrace
