// Packed images that are damaged, or made up, with the right checksum and without: nothing is read or written outside,
// and all unpackers see the same.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "kernels/cpu/jpeg/dct/fast_dct.h"
#include "kernels/cpu/jpeg/dct/packed_dct.h"
#include "kernels/cpu/jpeg/rows.h"
#include "kernels/packed/layout.h"
#include "tests/unit/kernels/packed/packed_rig.h"

namespace millrace::kernels::packed {
namespace {

Bytes make_packed(Size size, int components, int h, int v) {
  std::mt19937 random(23);
  Picture picture = make_picture(make_header(size, components, h, v, 1));
  fill(picture, {.density = 300, .bits = 9}, random);
  Encoder encoder;
  return pack(encoder, picture);
}

// To samples, with the slack that planes have.
void transform_all(const PackedImage& image, Target target) {
  const jpeg::PackedDct dct(target);
  std::array<std::uint16_t, jpeg::kCoefficients> quant;
  quant.fill(3);
  jpeg::Dequantiser dequantiser = jpeg::make_dequantiser(quant);
  jpeg::add_fast_factors(quant, dequantiser);
  GuardedBytes samples(jpeg::kCoefficients * kGroupBlocks + jpeg::kRowSlack);
  for (std::size_t i = 0; i < image.grid().groups(); ++i) {
    const Group group = image.group(i);
    const std::span<std::byte> out =
        samples.last(static_cast<std::size_t>(jpeg::kCoefficients * group.blocks + jpeg::kRowSlack));
    const jpeg::PackedRun run{.group = group,
                              .first = 0,
                              .count = group.blocks,
                              .dequantiser = &dequantiser,
                              .out = reinterpret_cast<std::uint8_t*>(out.data()),
                              .stride = jpeg::kBlock * group.blocks};
    for (const jpeg::Precision precision : {jpeg::Precision::kExact, jpeg::Precision::kFast})
      static_cast<void>(dct.transform(run, precision));
  }
}

// The bytes stand between pages that nobody may touch: at the one or at the other. Samples may be anything.
void unpack_by_all(std::span<const std::uint8_t> bytes, Check check) {
  for (const Placed::At at : {Placed::At::kEnd, Placed::At::kBegin}) {
    Placed placed(bytes, at);
    PackedImage image;
    if (!image.read(placed.bytes(), check)) return;
    const auto expected = unpack_all(image, scalar_unpacker());
    for (const Target target : every_target()) {
      REQUIRE((unpack_all(image, unpacker(target)) == expected));
      if (target != Target::kScalar) transform_all(image, target);
    }
  }
}

bool is_read(std::span<const std::uint8_t> bytes, Check check) {
  PackedImage image;
  return image.read(bytes, check);
}

TEST_CASE("no byte of a packed image can change without the checksum telling", "[packed]") {
  Bytes bytes = make_packed({40, 24}, 3, 2, 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const std::uint8_t flip : {0x01, 0x80, 0xFF}) {
      bytes[i] ^= flip;
      CAPTURE(i, static_cast<int>(flip));
      REQUIRE_FALSE(is_read(bytes, Check::kChecksum));
      bytes[i] ^= flip;
    }
  }
  REQUIRE(is_read(bytes, Check::kChecksum));
}

TEST_CASE("a packed image that was changed under a checksum made right is refused or unpacks alike", "[packed]") {
  const Bytes good = make_packed({40, 24}, 3, 2, 1);
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const std::uint8_t flip : {0x01, 0x10, 0x80, 0xFF}) {
      Bytes bytes = good;
      bytes[i] ^= flip;
      sign(bytes);
      CAPTURE(i, static_cast<int>(flip));
      unpack_by_all(bytes, Check::kChecksum);
      unpack_by_all(bytes, Check::kShape);
    }
  }
}

TEST_CASE("a packed image of another length is refused", "[packed]") {
  Bytes bytes = make_packed({40, 24}, 3, 1, 1);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Placed cut({bytes.data(), size});
    CAPTURE(size);
    REQUIRE_FALSE(is_read(cut.bytes(), Check::kShape));
    if (size < layout::kHeadBytes) continue;
    const std::uint64_t claimed = size;  // it says so itself
    std::memcpy(cut.bytes().data() + layout::kBytes, &claimed, sizeof claimed);
    REQUIRE_FALSE(is_read(cut.bytes(), Check::kShape));
  }
  bytes.push_back(0);
  REQUIRE_FALSE(is_read(bytes, Check::kShape));
  const std::uint64_t claimed = bytes.size();
  std::memcpy(bytes.data() + layout::kBytes, &claimed, sizeof claimed);
  REQUIRE_FALSE(is_read(bytes, Check::kShape));
}

TEST_CASE("groups of any bytes unpack alike, and stay within their bounds", "[packed]") {
  std::mt19937 random(24);
  const Bytes good = make_packed({8 * 32, 8 * 4}, 1, 1, 1);
  const std::size_t start = layout::groups_start(1, 4);
  for (int round = 0; round < 3000; ++round) {
    Bytes bytes = good;
    // Groups of all sizes, from none to the most that there are bytes for.
    std::uint16_t sizes[4] = {};
    auto left = static_cast<unsigned>(good.size() - start);
    for (int i = 0; i < 3; ++i) {
      sizes[i] = static_cast<std::uint16_t>(random() % 4 == 0 ? 0 : random() % (left + 1));
      left -= sizes[i];
    }
    sizes[3] = static_cast<std::uint16_t>(left);
    std::memcpy(bytes.data() + layout::kHeadBytes + layout::kTableBytes, sizes, sizeof sizes);
    const unsigned kind = random() % 4;
    for (std::size_t i = start; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::uint8_t>(kind == 0 ? 0xFF : kind == 1 ? random() % 2 * 0xFF : random());
    CAPTURE(round);
    unpack_by_all(bytes, Check::kShape);
  }
}

TEST_CASE("the longest values that shapes and bitmaps can claim end inside the padding", "[packed]") {
  const Bytes good = make_packed({8 * 32, 8 * 2}, 1, 1, 1);
  Bytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(layout::groups_start(1, 2)));
  const std::uint16_t sizes[2] = {0, 36};
  std::memcpy(bytes.data() + layout::kHeadBytes + layout::kTableBytes, sizes, sizeof sizes);
  bytes.resize(bytes.size() + 36, 0xFF);
  const std::uint64_t claimed = bytes.size();
  std::memcpy(bytes.data() + layout::kBytes, &claimed, sizeof claimed);
  REQUIRE(is_read(bytes, Check::kShape));
  for (int shape = 0; shape < 256; ++shape) {
    std::fill(bytes.end() - 32, bytes.end(), static_cast<std::uint8_t>(shape));
    CAPTURE(shape);
    unpack_by_all(bytes, Check::kShape);
  }
}

// Refused with the checksum made right, and with nobody looking at it.
bool is_refused(Bytes bytes, std::size_t at, std::initializer_list<std::uint8_t> values) {
  std::copy(values.begin(), values.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  sign(bytes);
  return !is_read(bytes, Check::kChecksum) && !is_read(bytes, Check::kShape);
}

TEST_CASE("a head that contradicts itself is refused, whatever its checksum says", "[packed]") {
  using namespace layout;
  const Bytes good = make_packed({40, 24}, 3, 2, 2);
  REQUIRE_FALSE(is_refused(good, 0, {'M', 'R', 'P', 'K', 1, 3, 2, 2, 40, 0, 24, 0, 0, 1, 1, 2}));

  CHECK(is_refused(good, 0, {'m'}));
  CHECK(is_refused(good, 4, {2}));
  CHECK(is_refused(good, kComponents, {1}));
  CHECK(is_refused(good, kComponents, {0}));
  CHECK(is_refused(good, kComponents, {4}));
  CHECK(is_refused(good, kH, {0}));
  CHECK(is_refused(good, kH, {4, 1}));
  CHECK(is_refused(good, kWidth, {0}));
  CHECK(is_refused(good, kWidth, {4}));
  CHECK(is_refused(good, kWidth, {0, 4}));
  CHECK(is_refused(good, kWidth, {0xFF, 0xFF, 0xFF, 0xFF}));
  CHECK(is_refused(good, kHeight, {40}));
  CHECK(is_refused(good, kTableOf, {2}));
  CHECK(is_refused(good, kTableOf + 2, {3}));
  CHECK(is_refused(good, kTables, {0}));
  CHECK(is_refused(good, kTables, {1}));
  CHECK(is_refused(good, kTables, {3}));
  CHECK(is_refused(good, kTables, {255}));
  CHECK(is_refused(good, kGroups, {9}));
  CHECK(is_refused(good, kGroups, {0xFF, 0xFF, 0xFF, 0xFF}));
  CHECK(is_refused(good, kReserved, {1}));
  CHECK(is_refused(good, kHeadBytes + 2 * 63, {0, 0}));
  CHECK(is_refused(good, kHeadBytes + 2 * kTableBytes, {0, 0}));
  CHECK(is_refused(good, kHeadBytes + 2 * kTableBytes, {0xFF, 0xFF}));
}

}  // namespace
}  // namespace millrace::kernels::packed
