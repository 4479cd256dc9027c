// K1 on damaged data: the verdict, and where it is good the coefficients, are the CPU decoder's.
#include <algorithm>

#include "tests/support/pictures/test_data.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/cuda/tokenise_rig.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace::kernels::cuda {
namespace {

using kernels::jpeg::Header;
using kernels::jpeg::read_header;

// What each of them says of the file, with whatever rows and run. True: both took it.
bool check_verdict(const File& file, std::mt19937& random) {
  const auto header = read_header(file_bytes(file));
  if (!header || header->scan.empty() || std::int64_t{header->size.width} * header->size.height > 1 << 18) return false;
  if (header->restart_interval != 0) return false;  // takes segments
  const TokeniseImage image = random() % 2 == 0 ? all_rows(*header) : some_rows(*header, random);
  const auto expected = decode_wanted(image);
  const auto result = tokenise_one(image, random_run(random));
  const bool takes = result && result->status == Status::kDone;
  REQUIRE(takes == expected.has_value());
  if (takes) REQUIRE((result->blocks == *expected));
  return takes;
}

File bytes_of(const JpegStream& stream) {
  return write_jpeg(stream).bytes;
}

}  // namespace

TEST_CASE("damaged random streams have the CPU decoder's verdict and coefficients", "[cuda]") {
  std::mt19937 random(81);
  int taken = 0, refused = 0;
  for (int i = 0; i < rounds(600); ++i) {
    const bool small = random() % 2 == 0;
    JpegDraw draw{.width = small ? 0 : 60 + below(random, 100), .height = small ? 0 : 60 + below(random, 100)};
    if (random() % 4 == 0) draw.range = JpegDraw::Range::kWild;
    const auto kind = static_cast<JpegDamage>(i % kJpegDamages);
    CAPTURE(i, i % kJpegDamages);
    (check_verdict(damage(write_jpeg(draw_unbroken(draw, random)), kind, random), random) ? taken : refused)++;
  }
  REQUIRE(taken > 30);
  REQUIRE(refused > 100);
}

TEST_CASE("damaged photographs have the CPU decoder's verdict and coefficients", "[cuda]") {
  std::mt19937 random(82);
  const auto folder = test_data("photos");
  if (!folder) return;
  int taken = 0;
  for (const auto& [name, file] : files_in(*folder)) {
    if (random() % 4 != 0) continue;
    CAPTURE(name);
    File damaged = file;
    for (unsigned k = random() % 4; k > 0; --k)
      damaged[damaged.size() / 2 + random() % (damaged.size() / 2)] ^= std::byte{static_cast<std::uint8_t>(random())};
    if (random() % 3 == 0) damaged.resize(damaged.size() - 1 - random() % (damaged.size() / 2));
    taken += check_verdict(damaged, random);
  }
  REQUIRE(taken > 0);
}

TEST_CASE("files that broke other decoders have the CPU decoder's verdict", "[cuda]") {
  std::mt19937 random(83);
  const auto folder = test_data("bad-jpeg");
  if (!folder) return;
  for (const auto& [name, file] : files_in(*folder)) {
    CAPTURE(name);
    for (int i = 0; i < 3; ++i) check_verdict(file, random);
  }
}

TEST_CASE("a scan cut anywhere has the CPU decoder's verdict", "[cuda]") {
  std::mt19937 random(84);
  for (int i = 0; i < rounds(6); ++i) {
    const File file = bytes_of(draw_unbroken({.width = 24, .height = 16, .density = 100 * i}, random));
    for (std::size_t size = file.size(); size > file.size() / 2; --size) {
      CAPTURE(i, size);
      check_verdict(File(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)), random);
    }
  }
}

TEST_CASE("bytes of one kind alone are decoded within bounds, and in time", "[cuda]") {
  std::mt19937 random(85);
  for (int i = 0; i < rounds(40); ++i) {
    const JpegFile file =
        write_jpeg(draw_unbroken({.range = JpegDraw::Range::kWild, .width = 400, .height = 400}, random));
    File bytes(file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(file.scan));
    const unsigned first = random() % 3 == 0 ? 0xFF : random() % 256, second = random() % 2 == 0 ? 0 : random() % 256;
    for (unsigned k = 200 + random() % 20000; k > 0; --k) {
      bytes.push_back(std::byte{static_cast<std::uint8_t>(first)});
      bytes.push_back(std::byte{static_cast<std::uint8_t>(second)});
    }
    CAPTURE(i, first, second);
    check_verdict(bytes, random);
  }
}

TEST_CASE("streams that never meet end in time, and say so", "[cuda]") {
  std::mt19937 random(86);
  // Differences alone: a block is two bits, an MCU of six blocks twelve, and no thread finds its phase.
  JpegStream stream =
      draw_unbroken({.width = 800, .height = 800, .h = 2, .v = 2, .components = 3, .density = 0}, random);
  for (JpegBlock& block : stream.blocks) block = {};
  for (auto& quant : stream.quant) {
    if (quant) quant->values.fill(1);
  }
  stream.dc.fill(flat_code(2, {0, 1}));
  stream.ac.fill(flat_code(1, {0}));
  const File file = bytes_of(stream);
  const auto header = read_header(file_bytes(file));
  REQUIRE(header);
  TokeniseRun run{.threads = 32, .shape = {.region_bytes = 20, .regions = 1, .most_rounds = 3}};

  const auto late = tokenise_one(all_rows(*header), run);
  run.shape.most_rounds = 32;
  const auto done = tokenise_one(all_rows(*header), run);

  REQUIRE(late->status == Status::kNotInTime);
  REQUIRE(done->status == Status::kDone);
  REQUIRE((done->blocks == stream.blocks));
}

TEST_CASE("a range that is too small for the tokens is not left", "[cuda]") {
  std::mt19937 random(87);
  for (int i = 0; i < rounds(40); ++i) {
    const File file = bytes_of(draw_unbroken({.width = 60 + below(random, 100), .height = 60, .density = 400}, random));
    const auto header = read_header(file_bytes(file));
    if (!header) continue;
    TokeniseImage image = some_rows(*header, random);
    if (!decode_wanted(image)) continue;
    std::uint32_t least = 0;
    for (std::uint32_t step = 1 << 16; step > 0; step /= 2) {
      image.token_capacity = least + step;
      if (tokenise_one(image, {})->status != Status::kDone) least += step;
    }
    image.token_capacity = least;
    REQUIRE((least == 0 || tokenise_one(image, {})->status == Status::kNotHere));
    image.token_capacity = least + 1;
    REQUIRE((tokenise_one(image, {})->blocks == *decode_wanted(image)));
  }
}

}  // namespace millrace::kernels::cuda
