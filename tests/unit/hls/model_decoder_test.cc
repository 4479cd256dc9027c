// The model of an FPGA decoder, driven by JPEG files: what it counts beside libjpeg-turbo's coefficients, that nothing
// gets lost in a design, and published figures.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "hls/model/calibration.h"
#include "hls/model/decoder.h"
#include "hls/model/explore.h"
#include "kernels/jpeg/unstuff.h"
#include "tests/bench/fpga/inputs.h"
#include "tests/support/jpeg/jpeg_coefficients.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"

namespace millrace::hls::model {
namespace {

kernels::jpeg::FileBytes bytes_of(const std::vector<std::byte>& file) {
  return {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
}

std::vector<std::byte> file_of(std::uint32_t width, std::uint32_t height, int h, int v, int quality, int restart = 0) {
  return make_jpeg({.pixels = make_pixels(width, height, 3, width + height),
                    .quality = quality,
                    .h_samp = h,
                    .v_samp = v,
                    .restart_interval = restart});
}

struct Counted {
  std::int64_t symbols = 0, values = 0;
};

// The symbols that an encoder needs for a file's coefficients: a DC size, a value or a run of 16 zeros each, an end.
Counted count(const std::vector<std::byte>& file) {
  const auto coefficients = read_jpeg_coefficients(file);
  REQUIRE(coefficients);
  Counted counted;
  for (const JpegPlane& plane : coefficients->planes) {
    for (const JpegBlock& block : plane.blocks) {
      int last = 0;
      ++counted.symbols;
      for (int k = 1; k < 64; ++k) {
        if (block[kernels::jpeg::kNatural[static_cast<std::size_t>(k)]] == 0) continue;
        counted.symbols += 1 + (k - last - 1) / 16;
        ++counted.values;
        last = k;
      }
      if (last < 63) ++counted.symbols;
    }
  }
  return counted;
}

std::int64_t values_of(const Picture& picture) {
  std::int64_t sum = 0;
  for (const McuSymbols& mcu : picture.mcus) sum += mcu.luma_values + mcu.chroma_values;
  return sum;
}

std::vector<Picture> some_pictures() {
  std::vector<Picture> pictures;
  for (const auto& [width, height, h, v] : {std::array{257, 190, 2, 2}, {120, 333, 1, 1}, {400, 300, 2, 1}})
    pictures.push_back(*read_picture(
        bytes_of(file_of(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), h, v, 85))));
  return pictures;
}

TEST_CASE("symbols, values and bits of a file are those of its coefficients", "[hls_model]") {
  for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {2, 2}}) {
    for (const int restart : {0, 3}) {
      const std::vector<std::byte> file = file_of(203, 151, h, v, 92, restart);
      const auto picture = read_picture(bytes_of(file));
      const Counted counted = count(file);
      CAPTURE(h, v, restart);
      REQUIRE(picture);
      CHECK(picture->symbols() == counted.symbols);
      CHECK(values_of(*picture) == counted.values);
      CHECK(picture->table_symbols == 2 * (12 + 162));
      if (restart > 0) continue;
      const auto header = kernels::jpeg::read_header(bytes_of(file));
      std::vector<std::uint8_t> plain(header->scan.size() + kernels::jpeg::kUnstuffSlack);
      const auto unstuffed = kernels::jpeg::reference::unstuff(header->scan, plain.data());
      const std::int64_t left = static_cast<std::int64_t>(unstuffed.size) * 8 - picture->bits();
      CHECK((left >= 0 && left < 8));
      CHECK(picture->scan_bytes == static_cast<std::int64_t>(unstuffed.consumed));
    }
  }
}

TEST_CASE("a file that is cut off is no picture for the model", "[hls_model]") {
  std::vector<std::byte> file = file_of(203, 151, 2, 2, 92);
  file.resize(file.size() / 2);
  CHECK_FALSE(read_picture(bytes_of(file)));
}

TEST_CASE("a whole picture's work is all of its blocks and pixels, a crop's is no more than it meets", "[hls_model]") {
  const Picture picture = *read_picture(bytes_of(file_of(257, 190, 2, 2, 85)));
  const Job whole = job_of(picture, crop_of(picture, Recipe::kWhole, 1, 0), {.recipe = Recipe::kWhole});
  const Job small = job_of(picture, {100, 90, 30, 20}, {.recipe = Recipe::kTrain});
  const Job packed = job_of(picture, {100, 90, 30, 20}, {.source = Source::kPacked, .recipe = Recipe::kTrain});

  std::int64_t pixels = 0;
  for (const McuWork& mcu : whole.mcus) pixels += mcu.pixels;
  CHECK(pixels == 257 * 190);
  CHECK(whole.idct_blocks == picture.blocks());
  CHECK(whole.symbols == picture.symbols());
  CHECK(whole.pixels == 224 * 224);
  CHECK(small.symbols == picture.symbols());  // a scan is decoded to its end
  CHECK(small.idct_blocks == 3 * 2 * 6);      // columns 6 to 8, rows 5 and 6
  CHECK(small.pixels == 224 * 224);
  CHECK(packed.blocks < picture.blocks() / 2);
  CHECK(packed.idct_blocks == small.idct_blocks);
}

TEST_CASE("every block and every pixel that goes into a design comes out", "[hls_model]") {
  const std::vector<Picture> pictures = some_pictures();
  Design raw = vitis_design();
  raw.batch = 4;
  for (Design design : {jpeg_design(), packed_design(), dlbooster_design(), raw}) {
    design.mcu_buffers = 1;
    design.line_rows = 1;
    const Recipe recipe = design.makes_tensors ? Recipe::kTrain : Recipe::kNothing;
    const std::vector<Job> jobs = jobs_of(pictures, work_spec(design, recipe), 70);
    const Prediction prediction = predict(design, cards()[0], jobs);
    std::int64_t blocks = 0;
    for (const Job& job : jobs) blocks += job.idct_blocks;
    CAPTURE(design.name);
    CHECK(prediction.blocks_in == blocks);
    if (design.makes_tensors)
      CHECK(prediction.pixels_out == 70 * 224 * 224);
    else
      CHECK(prediction.blocks_out == blocks);
    for (const StageReport& stage : prediction.stages) {
      CHECK(stage.busy + stage.starved + stage.output_full == Approx(1));
      CHECK(stage.no_image <= stage.starved);
    }
  }
}

TEST_CASE("a lane alone takes its symbols' clocks, whatever its turns, and lanes add up", "[hls_model]") {
  const std::vector<Picture> pictures = some_pictures();
  Design design = jpeg_design();
  design.lanes = design.lanes_an_idct = design.lanes_a_resampler = 1;
  design.turns = 1;
  design.clocks_a_block = design.clocks_an_image = 0;
  design.idct_coefficients = design.colour_pixels = design.resample_pixels = 64;  // so that lanes bind
  design.counts_pcie = false;
  design.call_us = 0;
  design.batch = 16;
  const std::vector<Job> jobs = jobs_of(pictures, work_spec(design, Recipe::kTrain), 16 * 24);
  double symbols = 0;
  for (const Job& job : jobs) symbols += static_cast<double>(job.symbols) / static_cast<double>(jobs.size());
  const double alone = design.clock_mhz * 1e6 / symbols;

  CHECK(predict(design, cards()[0], jobs).images_a_second == Approx(alone).epsilon(0.03));
  design.turns = 2;  // each has half of the clocks
  CHECK(predict(design, cards()[0], jobs).images_a_second == Approx(alone).epsilon(0.03));
  design.lanes = design.lanes_an_idct = design.lanes_a_resampler = 4;
  CHECK(predict(design, cards()[0], jobs).images_a_second == Approx(4 * alone).epsilon(0.06));
}

TEST_CASE("a front has no design that another beats, and only what the card has room and power for", "[hls_model]") {
  const std::vector<Picture> pictures = some_pictures();
  std::vector<Design> designs = space_of(Source::kPacked);
  designs.resize(60);
  for (Design& design : designs) design.batch = 8;
  const Card card = *card_of("u50");
  const std::vector<Tried> tried =
      explore(designs, card, jobs_of(pictures, work_spec(designs[0], Recipe::kCentre), 40), 2);
  REQUIRE_FALSE(tried.empty());
  int front = 0;
  for (const Tried& one : tried) {
    CHECK(is_placeable(one.design, card));
    CHECK(one.fits == (one.prediction.watts <= card.most_watts));
    front += one.worth_by_watts ? 1 : 0;
    for (const Tried& other : tried) {
      if (one.worth_by_watts && other.fits && other.prediction.watts < one.prediction.watts)
        CHECK(other.prediction.images_a_second < one.prediction.images_a_second);
    }
  }
  CHECK(front > 0);
}

TEST_CASE("the model is within 20 % of published designs", "[hls_model]") {
  const auto folder = test_data("photos");
  if (!folder) return;
  const std::vector<Picture> pictures = bench::read_folder(*folder);
  const std::vector<Pixels> photographs = bench::read_pixels(*folder, 64);
  REQUIRE_FALSE(photographs.empty());
  for (const Figure& figure : figures()) {
    if (!figure.is_held) continue;
    std::vector<Picture> inputs = pictures;
    if (figure.input.width > 0) inputs = {bench::stand_in(figure.input, photographs, 0)};
    const Calibrated result = calibrate(figure, inputs);
    CAPTURE(figure.name, figure.published, result.predicted);
    CHECK(std::abs(result.off) <= kMostOff);
  }
}

}  // namespace
}  // namespace millrace::hls::model
