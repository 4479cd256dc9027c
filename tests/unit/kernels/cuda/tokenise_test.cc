// K1 on the host executor against coefficients that are known: those that a stream was written from, and the CPU
// decoder's.
#include <algorithm>

#include "tests/support/pictures/test_data.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/cuda/tokenise_rig.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {
namespace {

using kernels::cuda::Status;
using kernels::jpeg::Header;
using kernels::jpeg::read_header;

JpegDraw draw_of(std::mt19937& random, int width, int height) {
  return {.range = below(random, 2) == 0 ? JpegDraw::Range::kWild : JpegDraw::Range::kOrdinary,
          .width = width,
          .height = height};
}

// The image has these blocks, given with differences, or where some cannot be said, none.
void check_blocks(const TokeniseImage& image, const std::vector<JpegBlock>& all, const TokeniseRun& run) {
  const auto expected = wanted_of(with_levels(all, image.header), image);
  const auto before = wanted_of(all, {.header = image.header, .end_row = image.end_row});
  const bool fits = std::ranges::all_of(before, fits_tokens) && fit_levels(before, image.header);
  const auto result = tokenise_one(image, run);
  CAPTURE(run.threads, run.shape.region_bytes, run.shape.regions, run.lead, image.first_row, image.end_row);
  REQUIRE(result);
  REQUIRE(result->status == (fits ? Status::kDone : Status::kNotHere));
  if (fits) REQUIRE((result->blocks == expected));
}

void check_stream(const JpegStream& stream, std::mt19937& random) {
  const JpegFile file = write_jpeg(stream);
  const auto header = read_header(file_bytes(file.bytes));
  if (!header) return;
  check_blocks(all_rows(*header), stream.blocks, random_run(random));
  check_blocks(some_rows(*header, random), stream.blocks, random_run(random));
}

}  // namespace

TEST_CASE("random streams have the coefficients that were coded, wherever threads begin", "[cuda]") {
  std::mt19937 random(61);
  for (int i = 0; i < rounds(300); ++i) {
    CAPTURE(i);
    check_stream(draw_unbroken(draw_of(random, 0, 0), random), random);
  }
}

TEST_CASE("random streams of many windows have the coefficients that were coded", "[cuda]") {
  std::mt19937 random(62);
  for (int i = 0; i < rounds(30); ++i) {
    JpegDraw draw = draw_of(random, 100 + below(random, 300), 100 + below(random, 200));
    draw.density = i % 3 == 0 ? 500 : i % 3 == 1 ? 80 : 5;
    CAPTURE(i);
    check_stream(draw_unbroken(draw, random), random);
  }
}

TEST_CASE("photographs are decoded in time, and little of them twice", "[cuda]") {
  const auto folder = test_data("photos");
  if (!folder) return;
  std::uint64_t regions = 0, decoded = 0;
  for (const auto& [name, file] : files_in(*folder)) {
    const auto header = read_header(file_bytes(file));
    if (!header) continue;
    const auto result = tokenise_one(all_rows(*header), {});
    CAPTURE(name);
    REQUIRE(result);
    REQUIRE(result->status == Status::kDone);
    regions += result->work.regions;
    decoded += result->work.decoded;
  }
  REQUIRE(regions > 100000);
  REQUIRE(decoded < regions * 3 / 2);
}

TEST_CASE("real JPEG files have the CPU decoder's coefficients", "[cuda]") {
  std::mt19937 random(63);
  kernels::jpeg::Decoder decoder;
  for (const char* const name : {"photos", "jpeg-variants"}) {
    const auto folder = test_data(name);
    if (!folder) continue;
    int taken = 0;
    for (const auto& [file_name, file] : some_files_in(*folder)) {
      const auto header = read_header(file_bytes(file));
      if (!header || std::int64_t{header->size.width} * header->size.height > 1 << 20) continue;
      if (header->restart_interval != 0) continue;  // takes segments
      const auto blocks = decode_blocks(decoder, file);
      if (!blocks) continue;
      CAPTURE(file_name);
      check_blocks(all_rows(*header), *blocks, {});
      check_blocks(some_rows(*header, random), *blocks, random_run(random));
      ++taken;
    }
    REQUIRE(taken > 0);
  }
}

}  // namespace millrace
