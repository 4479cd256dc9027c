// Every decoder and encoder beside the reference: good tiles, and tiles that were made up.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>

#include "kernels/l3/decoder.h"
#include "kernels/l3/encoding/encoder.h"
#include "kernels/l3/reference.h"

namespace millrace::kernels::l3 {
namespace {

constexpr std::uint8_t kGuard = 0xA5;

struct alignas(64) Planes {
  std::array<std::uint8_t, kMostPlaneBytes> samples{};
  std::array<std::uint8_t, 64> behind{};
};

// Pixels of a tile: noise of some bits on a slope, or a few colours.
std::vector<std::uint8_t> tile_pixels(std::mt19937& random, const TileShape& shape) {
  const unsigned bits = random() % (8U * static_cast<unsigned>(shape.bytes) + 1), slope = random() % 9;
  const bool has_few = random() % 4 == 0;
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < shape.width * shape.height * shape.channels; ++i) {
    const auto noise = static_cast<std::uint32_t>(random() & ((std::uint64_t{1} << bits) - 1));
    const std::uint32_t value = has_few ? noise % 5 * 51 : noise + static_cast<std::uint32_t>(i) * slope;
    for (int b = 0; b < shape.bytes; ++b) pixels.push_back(static_cast<std::uint8_t>(value >> (8 * b)));
  }
  return pixels;
}

TileShape any_shape(std::mt19937& random) {
  const auto side = [&] { return random() % 2 == 0 ? kTileSide : 1 + static_cast<int>(random() % kTileSide); };
  return {1 + static_cast<int>(random() % kMostChannels), 1 + static_cast<int>(random() % 2), side(), side()};
}

std::vector<std::uint8_t> encoded(std::mt19937& random, const TileShape& shape, TileEncoder encode_tile) {
  const std::vector<std::uint8_t> pixels = tile_pixels(random, shape);
  const SampleView view{pixels.data(),
                        {shape.width, shape.height},
                        shape.channels,
                        shape.bytes,
                        std::ptrdiff_t{shape.width} * shape.pixel_bytes()};
  std::vector<std::uint8_t> tile;
  encode_tile(view, random() % 2 == 0 ? Effort::kFast : Effort::kBest, tile);
  return tile;
}

// Bytes in memory of their own length and kPadding.
TileFault decoded(const TileDecoder& decoder, const TileShape& shape, const std::vector<std::uint8_t>& tile,
                  Planes& planes) {
  std::vector<std::uint8_t> padded = tile;
  padded.resize(tile.size() + kPadding, kGuard);
  planes.samples.fill(kGuard);
  planes.behind.fill(kGuard);
  return decoder.decode(shape, FileBytes(padded).first(tile.size()), planes.samples.data());
}

// The samples that are in the picture.
std::vector<std::uint8_t> shown(const TileShape& shape, const Planes& planes) {
  std::vector<std::uint8_t> samples;
  for (int row = 0; row < shape.channels * kTileSide; ++row) {
    if (row % kTileSide >= shape.height) continue;
    const auto* const begin = planes.samples.data() + row * kTileSide * shape.bytes;
    samples.insert(samples.end(), begin, begin + shape.width * shape.bytes);
  }
  return samples;
}

void compare(const TileShape& shape, const std::vector<std::uint8_t>& tile) {
  static Planes expected, found;
  const TileFault fault = decoded({reference::decode_tile, nullptr}, shape, tile, expected);
  for (const Target target : available_targets()) {
    CAPTURE(name_of(target), shape.channels, shape.bytes, shape.width, shape.height);

    REQUIRE(decoded(tile_decoder(target), shape, tile, found) == fault);
    if (fault == TileFault::kNone) REQUIRE(shown(shape, found) == shown(shape, expected));
    REQUIRE(std::all_of(found.behind.begin(), found.behind.end(), [](std::uint8_t byte) { return byte == kGuard; }));
    const auto end = static_cast<std::size_t>(shape.channels * kTilePixels * shape.bytes);
    REQUIRE((end == kMostPlaneBytes || found.samples[end] == kGuard));
  }
}

}  // namespace

TEST_CASE("all targets decode the same pixels of good tiles", "[l3]") {
  std::mt19937 random(3);
  for (int i = 0; i < 400; ++i) {
    const TileShape shape = any_shape(random);
    compare(shape, encoded(random, shape, tile_encoder(best_target())));
  }
}

TEST_CASE("all targets refuse the same tiles that were changed, and decode the same pixels of the others", "[l3]") {
  std::mt19937 random(5);
  int refused = 0, taken = 0;
  for (int i = 0; i < 400; ++i) {
    const TileShape shape = any_shape(random);
    std::vector<std::uint8_t> tile = encoded(random, shape, tile_encoder(best_target()));
    for (unsigned change = random() % 3; change < 3; ++change)
      tile[random() % std::min<std::size_t>(tile.size(), random() % 2 == 0 ? 40 : 4000)] =
          static_cast<std::uint8_t>(random());
    if (random() % 8 == 0) tile.resize(random() % (tile.size() + 1));
    compare(shape, tile);
    TileParts parts;
    ++(split_tile(shape, tile, parts) == TileFault::kNone ? taken : refused);
  }
  REQUIRE(refused > 50);
  REQUIRE(taken > 50);
}

TEST_CASE("each code, mode and transform is decoded alike by all targets", "[l3]") {
  std::mt19937 random(11);
  for (int code = 0; code < kCodes; ++code) {
    for (const int bytes : {1, 2}) {
      const TileShape shape{3, bytes, kTileSide, kTileSide};
      std::vector<std::uint8_t> tile{static_cast<std::uint8_t>(random() % 4 << 2U)};
      for (int i = 0; i < 3 * bytes; ++i) tile.push_back(static_cast<std::uint8_t>(random()));
      std::size_t payload = 0, codes = 0;
      for (int c = 0; c < 3; ++c) {
        std::uint32_t modes = 0;
        for (int pair = 0; pair < kRowPairs; ++pair) modes |= (1 + random() % 3U) << (2 * pair) & 0xFFFF'FFFFU;
        for (int i = 0; i < 4; ++i) tile.push_back(static_cast<std::uint8_t>(modes >> (8 * i)));
        codes += kRowPairs * kCodesOfPair;
      }
      for (std::size_t i = 0; i < codes; ++i) {
        const auto now = static_cast<std::uint8_t>(i % 3 == 0 ? code : static_cast<int>(random() % kCodes));
        tile.push_back(now);
        payload += book_of(TileKind::kCoded, bytes).bytes[now];
      }
      for (std::size_t i = 0; i < payload; ++i) tile.push_back(static_cast<std::uint8_t>(random()));
      TileParts parts;

      REQUIRE(split_tile(shape, tile, parts) == TileFault::kNone);
      compare(shape, tile);
    }
  }
}

TEST_CASE("all encoders write the reference's bytes", "[l3]") {
  std::mt19937 random(17);
  for (int i = 0; i < 150; ++i) {
    const TileShape shape = any_shape(random);
    for (const Target target : available_targets()) {
      const auto seed = static_cast<std::mt19937::result_type>(i);
      std::mt19937 first(seed), second(seed);
      CAPTURE(name_of(target), shape.channels, shape.bytes, shape.width, shape.height);

      REQUIRE(encoded(first, shape, tile_encoder(target)) == encoded(second, shape, reference::encode_tile));
    }
  }
}

}  // namespace millrace::kernels::l3
