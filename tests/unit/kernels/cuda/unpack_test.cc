// The kernel that unpacks packed images, alone: its tokens are the blocks that kernels/packed unpacks, whatever the bytes
// are, or the image is not here.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>

#include "kernels/cuda/host_block.h"
#include "kernels/cuda/plan/packed_groups.h"
#include "kernels/cuda/unpack/unpack.h"
#include "kernels/packed/layout.h"
#include "kernels/packed/shapes.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/packed/packed_rig.h"

namespace millrace::kernels::cuda {
namespace {

using packed::Bytes;
using packed::Grid;
using packed::PackedImage;
using packed::Picture;

using Block = std::array<std::int16_t, 64>;  // zig-zag, DC is the level
constexpr BlockEntry kUnset{0xffffffff, 0x5a5a, 0xffff};

struct Unpacked {
  Status status;
  std::vector<std::optional<Block>> blocks;  // of the window's MCU rows, in the scan's order; nullopt: not unpacked
};

Block block_of(const BlockEntry& entry, const std::vector<Token>& tokens) {
  Block block{};
  block[0] = entry.dc;
  std::size_t position = 1;
  for (std::size_t i = 0; i < entry.tokens; ++i, ++position) {
    const Token token = tokens.at(entry.first_token + i);
    position += token >> 12;
    const int value = static_cast<std::int16_t>(token << 4) >> 4;
    if (value != 0) block.at(position) = static_cast<std::int16_t>(value);
  }
  return block;
}

// The image's bytes end where a page begins that nobody may touch, and each array is as long as the plan says.
Unpacked unpack_window(const PackedImage& image, std::span<const std::uint8_t> bytes, const jpeg::McuWindow& window,
                       std::uint32_t seed) {
  const Grid& grid = image.grid();
  const auto at = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(bytes.data()) % 4);
  std::vector<PackedGroup> groups;
  ImageJob job{};
  job.blocks_in_mcu = static_cast<std::uint8_t>(grid.blocks_in_mcu());
  job.first_token = 4;
  job.token_capacity = append_groups(image, bytes.data(), window, at, 0, groups);
  const auto shapes = packed_shapes();
  std::vector<std::uint64_t> tokens((4 + job.token_capacity) / 4);
  std::vector<BlockEntry> entries(
      static_cast<std::size_t>(grid.blocks_in_mcu_row() * (window.lines.end - window.lines.begin)), kUnset);
  Unpacked made{};
  const UnpackArgs args{.groups = groups.data(),
                        .jobs = &job,
                        .bytes = bytes.data() - at,
                        .shapes = shapes.data(),
                        .tokens = reinterpret_cast<Token*>(tokens.data()),
                        .blocks = entries.data(),
                        .statuses = &made.status};
  run_grid({static_cast<int>(groups.size()), kUnpackThreads, seed}, [&](HostBlock& block) { unpack(block, args); });
  std::vector<Token> own(job.token_capacity);
  if (!own.empty()) std::memcpy(own.data(), tokens.data() + 1, own.size() * sizeof(Token));
  for (const BlockEntry& entry : entries) {
    const bool is_set = std::memcmp(&entry, &kUnset, sizeof entry) != 0;
    made.blocks.push_back(is_set && made.status == Status::kDone ? std::optional(block_of(entry, own)) : std::nullopt);
  }
  return made;
}

std::vector<Block> expected_blocks(const PackedImage& image, const jpeg::McuWindow& window) {
  const auto all = unpack_all(image, packed::scalar_unpacker());
  const auto in_row = static_cast<std::size_t>(image.grid().blocks_in_mcu_row());
  const std::size_t first = in_row * static_cast<std::size_t>(window.lines.begin);
  std::vector<Block> blocks(in_row * static_cast<std::size_t>(window.lines.end - window.lines.begin));
  for (std::size_t i = 0; i < blocks.size(); ++i) std::copy_n(&all[(first + i) * 64], 64, blocks[i].begin());
  return blocks;
}

bool unpacks_twelve_bits(const Block& block) {
  return std::all_of(block.begin() + 1, block.end(), [](int value) { return value >= -2048 && value <= 2047; });
}

// Blocks that are there are those expected; those of the window are there.
void check_unpacked_blocks(const Unpacked& made, const std::vector<Block>& expected, const Grid& grid,
                           const jpeg::McuWindow& window) {
  REQUIRE(made.blocks.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto mcu = static_cast<int>(i / static_cast<std::size_t>(grid.blocks_in_mcu())) % grid.columns;
    CAPTURE(i, mcu);
    const bool wanted = mcu >= window.columns.begin && mcu < window.columns.end;
    REQUIRE((made.blocks[i] || !wanted));
    if (made.blocks[i]) REQUIRE((*made.blocks[i] == expected[i]));
  }
}

jpeg::McuRange random_range(std::mt19937& random, int count) {
  const int begin = static_cast<int>(random() % static_cast<unsigned>(count));
  return {begin, begin + 1 + static_cast<int>(random() % static_cast<unsigned>(count - begin))};
}
jpeg::McuWindow random_unpack_window(std::mt19937& random, const Grid& grid) {
  return {random_range(random, grid.rows), random_range(random, grid.columns)};
}
jpeg::McuWindow whole_window(const Grid& grid) {
  return {{0, grid.rows}, {0, grid.columns}};
}

struct UnpackSampling {
  int components, h, v;
};
constexpr UnpackSampling kUnpackSamplings[] = {{1, 1, 1}, {3, 1, 1}, {3, 2, 1}, {3, 1, 2}, {3, 2, 2}};

TEST_CASE("groups become the blocks that were packed, in every sampling and window", "[cuda][unpack]") {
  constexpr packed::Draw kDraws[] = {{}, {0, 1, 3}, {1000, 1, 1}, {12, 2, 15}, {700, 11, 11}, {300, 9, 12}, {60, 4, 0}};
  std::mt19937 random(1);
  packed::Encoder encoder;
  PackedImage image;
  int left_out = 0;
  for (const UnpackSampling& sampling : kUnpackSamplings) {
    for (const packed::Draw& draw : kDraws) {
      for (int round = 0; round < rounds(2); ++round) {
        const Size size{static_cast<int>(5 + random() % 900), static_cast<int>(1 + random() % 70)};
        Picture picture =
            packed::make_picture(packed::make_header(size, sampling.components, sampling.h, sampling.v, 1));
        packed::fill(picture, draw, random);
        packed::Placed placed(pack(encoder, picture));
        REQUIRE(image.read(placed.bytes(), packed::Check::kChecksum));
        REQUIRE(has_usual_groups(image));
        const jpeg::McuWindow window = random_unpack_window(random, image.grid());
        CAPTURE(sampling.components, sampling.h, sampling.v, draw.density, draw.bits, size.width, size.height);

        const Unpacked made = unpack_window(image, placed.bytes(), window, random());

        REQUIRE(made.status == Status::kDone);
        check_unpacked_blocks(made, expected_blocks(image, window), image.grid(), window);
        left_out += static_cast<int>(std::ranges::count_if(made.blocks, [](const auto& block) { return !block; }));
      }
    }
  }
  REQUIRE(left_out > 0);  // groups that no window meets
}

// A grey image of one group, whose bytes are the caller's.
Bytes image_of_group(std::span<const std::uint8_t> group, int blocks) {
  static packed::Encoder encoder;
  const Picture picture = packed::make_picture(packed::make_header({8 * blocks, 8}, 1, 1, 1, 1));
  Bytes bytes = pack(encoder, picture);
  bytes.resize(packed::layout::groups_start(1, 1));
  const auto size = static_cast<std::uint16_t>(group.size());
  std::memcpy(bytes.data() + packed::layout::kHeadBytes + packed::layout::kTableBytes, &size, sizeof size);
  bytes.insert(bytes.end(), group.begin(), group.end());
  const std::uint64_t all = bytes.size();
  std::memcpy(bytes.data() + packed::layout::kBytes, &all, sizeof all);
  return bytes;
}

// What a group says, judged without the kernel: its values may use so many bytes.
struct Verdict {
  bool fits;  // in 12 bits
  std::vector<Block> blocks;
};
Verdict verdict_on(const PackedImage& image) {
  Verdict verdict{true, expected_blocks(image, whole_window(image.grid()))};
  verdict.fits = std::ranges::all_of(verdict.blocks, unpacks_twelve_bits);
  return verdict;
}

TEST_CASE("every shape unpacks to what it says, or its image is not here for a value beyond 12 bits",
          "[cuda][unpack]") {
  std::mt19937 random(2);
  PackedImage image;
  int done = 0, not_here = 0;
  for (int shape = 0; shape <= packed::kRawShape; ++shape) {
    for (int round = 0; round < rounds(3); ++round) {
      const int blocks = 1 + static_cast<int>(random() % 32);
      Bytes group(kMostPackedGroup);
      // All bits, few, or those of small numbers.
      const unsigned kind = random() % 3;
      std::ranges::generate(group, [&] {
        return static_cast<std::uint8_t>(kind == 0 ? random() : kind == 1 ? random() & random() & random() : 0xFF);
      });
      for (int i = 0; i < blocks; ++i)
        group[static_cast<std::size_t>(4 + i)] = static_cast<std::uint8_t>(random() % 4 == 0 ? random() : shape);
      packed::Placed placed(image_of_group(group, blocks));
      REQUIRE(image.read(placed.bytes(), packed::Check::kShape));
      CAPTURE(shape, round, blocks);
      const Verdict verdict = verdict_on(image);

      const Unpacked made = unpack_window(image, placed.bytes(), whole_window(image.grid()), random());

      REQUIRE(made.status == (verdict.fits ? Status::kDone : Status::kNotHere));
      if (verdict.fits) check_unpacked_blocks(made, verdict.blocks, image.grid(), whole_window(image.grid()));
      ++(verdict.fits ? done : not_here);
    }
  }
  REQUIRE(done > 200);
  REQUIRE(not_here > rounds(5));
}

// The kernel looks at nothing behind the image: here its bytes end at the forbidden page, without padding.
class AtPagesEnd {
 public:
  explicit AtPagesEnd(std::span<const std::uint8_t> bytes) : memory_(bytes.size()) {
    const std::span<const std::byte> at = memory_.at_end(std::as_bytes(bytes));
    bytes_ = {reinterpret_cast<const std::uint8_t*>(at.data()), at.size()};
  }
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  GuardedBytes memory_;
  std::span<const std::uint8_t> bytes_;
};

// Done and equal, or not here; read() sees the same image without and with padding.
Status check_damaged(const Bytes& bytes, std::uint32_t seed) {
  packed::Placed placed(bytes);
  PackedImage padded, image;
  if (!padded.read(placed.bytes(), packed::Check::kShape) || !has_usual_groups(padded)) return Status::kNotInTime;
  const AtPagesEnd bare(bytes);
  REQUIRE(image.read(bare.bytes(), packed::Check::kShape));
  const jpeg::McuWindow window = whole_window(image.grid());
  const Unpacked made = unpack_window(image, bare.bytes(), window, seed);
  if (made.status == Status::kDone) check_unpacked_blocks(made, expected_blocks(padded, window), image.grid(), window);
  return made.status;
}

TEST_CASE("damaged groups give what they say, or are not here, and nothing outside is touched", "[cuda][unpack]") {
  std::mt19937 random(3);
  packed::Encoder encoder;
  int done = 0, not_here = 0;
  for (const UnpackSampling& sampling : kUnpackSamplings) {
    Picture picture =
        packed::make_picture(packed::make_header({90, 40}, sampling.components, sampling.h, sampling.v, 1));
    packed::fill(picture, {.density = 300, .bits = 7}, random);
    const Bytes good = pack(encoder, picture);
    const std::size_t tables = sampling.components == 1 ? 1 : 2;
    const std::size_t groups = packed::grid_of(picture.header).groups();
    const std::size_t start = packed::layout::groups_start(tables, groups);
    for (int round = 0; round < rounds(400); ++round) {
      Bytes bytes = good;
      const std::size_t from = random() % 8 == 0 ? packed::layout::kHeadBytes : start;
      for (unsigned i = 0; i <= random() % 3; ++i) {
        const std::size_t at = from + random() % (bytes.size() - from);
        bytes[at] = static_cast<std::uint8_t>(random() % 2 == 0 ? random() : bytes[at] ^ 1U << random() % 8);
      }
      CAPTURE(sampling.components, sampling.h, sampling.v, round);
      const Status status = check_damaged(bytes, random());
      done += status == Status::kDone;
      not_here += status == Status::kNotHere;
    }
  }
  REQUIRE(done > 200);
  REQUIRE(not_here > 100);
}

TEST_CASE("groups of any bytes and sizes touch nothing outside", "[cuda][unpack]") {
  std::mt19937 random(4);
  int not_here = 0;
  for (int round = 0; round < rounds(1500); ++round) {
    const int blocks = 1 + static_cast<int>(random() % 32);
    Bytes group(static_cast<std::size_t>(4 + blocks) + random() % (random() % 2 == 0 ? 40 : 1200));
    const unsigned kind = random() % 3;
    std::ranges::generate(group, [&] {
      return static_cast<std::uint8_t>(kind == 0 ? 0xFF : kind == 1 ? random() & random() & random() : random());
    });
    CAPTURE(round, blocks, group.size());
    not_here += check_damaged(image_of_group(group, blocks), random()) == Status::kNotHere;
  }
  REQUIRE(not_here > rounds(500));
}

TEST_CASE("a group that ends before its values do, or whose bitmaps reach into them, is not here", "[cuda][unpack]") {
  // Two blocks of shape 3 (a byte of bitmap; lanes of 3, 3, 2 bits), no differences, two values each.
  const Bytes whole{5, 0, 0, 0, 3, 3, 0x3a, 0x0f, 5, 3};
  REQUIRE(check_damaged(image_of_group(whole, 2), 1) == Status::kDone);
  Bytes short_by_one = whole;
  short_by_one.erase(short_by_one.begin() + 7);
  REQUIRE(check_damaged(image_of_group(short_by_one, 2), 1) == Status::kNotHere);
  const Bytes no_bitmaps{5, 0, 0, 0, 3, 3, 7};
  REQUIRE(check_damaged(image_of_group(no_bitmaps, 2), 1) == Status::kNotHere);
}

TEST_CASE("groups too small for their heads, or larger than any that is made, are unusual", "[cuda][unpack]") {
  PackedImage image;
  const auto is_usual = [&](std::size_t size) {
    const Bytes bytes = image_of_group(Bytes(size), 32);
    REQUIRE(image.read(bytes, packed::Check::kShape));
    return has_usual_groups(image);
  };
  CHECK_FALSE(is_usual(35));
  CHECK(is_usual(36));
  CHECK(is_usual(kMostPackedGroup));
  CHECK_FALSE(is_usual(kMostPackedGroup + 1));
}

}  // namespace
}  // namespace millrace::kernels::cuda
