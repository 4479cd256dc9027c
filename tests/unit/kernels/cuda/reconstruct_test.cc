// The CUDA reconstruction on the host executor: tensors beside those of libjpeg-turbo and the CPU's reference
// functions, bit by bit.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cuda/plan/tile_plan.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/level_difference.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/cuda/reconstruct_rig.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace::kernels {
namespace {

using kernels::cuda::BatchRecipe;
using kernels::cuda::Status;

constexpr kernels::StoreSpec kBytesNchw{};

struct Image {
  File file;
  JpegCoefficients coefficients;
  Size size() const { return {coefficients.width, coefficients.height}; }
};

Image image_of(File file) {
  auto coefficients = read_jpeg_coefficients(file);
  REQUIRE(coefficients);
  return {std::move(file), std::move(*coefficients)};
}

Image make_image(Size size, int h, int v, std::uint32_t seed, std::uint32_t channels = 3) {
  return image_of(make_jpeg({.pixels = make_pixels(static_cast<std::uint32_t>(size.width),
                                                   static_cast<std::uint32_t>(size.height), channels, seed),
                             .quality = 50 + static_cast<int>(seed % 50),
                             .h_samp = h,
                             .v_samp = v}));
}

// Of fast, in levels of 255; kernels/cuda/README.md states them.
constexpr double kMostMean = 1.0;
constexpr int kMostAnywhere = 64;

// As RandomResizedCrop draws it: 0.08 to all of the area, sides 3:4 to 4:3.
Box training_crop(std::mt19937& random, Size size) {
  const auto between = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  const double area = between(0.08, 1) * size.width * size.height, ratio = std::exp(between(-0.2877, 0.2877));
  const int width = std::clamp(static_cast<int>(std::sqrt(area * ratio)), 1, size.width);
  const int height = std::clamp(static_cast<int>(std::sqrt(area / ratio)), 1, size.height);
  return {below(random, size.width - width + 1), below(random, size.height - height + 1), width, height};
}

struct ReconstructSampling {
  int h, v;
};
constexpr ReconstructSampling kSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}};

// One image after the other in a batch of its own.
void check(const Image& image, const BatchRecipe& recipe, const TensorCut& cut, std::uint32_t seed, int tiles = 1) {
  TokenBatch batch(recipe);
  CAPTURE(image.size().width, image.size().height, image.coefficients.planes[0].h, image.coefficients.planes[0].v,
          cut.crop.left, cut.crop.top, cut.crop.width, cut.crop.height, recipe.size.width, recipe.size.height, cut.left,
          cut.top, static_cast<int>(cut.flip), static_cast<int>(recipe.filter), static_cast<int>(recipe.order), seed,
          tiles);
  REQUIRE(batch.add(image.coefficients, cut, tiles) == "");
  batch.run(seed);
  REQUIRE(batch.status(0) == Status::kDone);
  REQUIRE((batch.tensor(0) == reference_tensor(image.file, image.size(), recipe, cut)));
}

// Whether its values are among those that tokens hold.
bool reconstructs_tokens(const JpegCoefficients& coefficients) {
  for (const JpegPlane& plane : coefficients.planes) {
    for (const JpegBlock& block : plane.blocks) {
      for (std::size_t i = 1; i < block.size(); ++i) {
        if (block[i] < -2048 || block[i] > 2047) return false;
      }
    }
  }
  return true;
}

// Whether our decoder on the CPU decodes this box by itself.
bool cpu_takes(const Image& image, const Box& box) {
  const auto header = kernels::jpeg::read_header(file_bytes(image.file));
  if (!header) return false;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(3 * box.width * box.height));
  const kernels::MutableU8View view{pixels.data(), box.width, box.height, header->components,
                                    std::ptrdiff_t{box.width} * header->components};
  return decoders().front()->decode(*header, box, view, Clock::now() + std::chrono::minutes(5)) ==
         kernels::jpeg::Outcome::kDecoded;
}

Flip flip_of(std::uint32_t draw) {
  return draw % 2 == 0 ? Flip::kNone : Flip::kHorizontal;
}

TEST_CASE("a GPU's tensor is the CPU's, whatever the sampling and the crop", "[cuda]") {
  std::mt19937 random(11);
  for (const ReconstructSampling& sampling : kSamplings) {
    for (int i = 0; i < rounds(25); ++i) {
      const Size size{1 + below(random, 120), 1 + below(random, 120)};
      const Image image = make_image(size, sampling.h, sampling.v, random());
      const BatchRecipe recipe{{1 + below(random, 60), 1 + below(random, 60)}, kBytesNchw};
      check(image, recipe, {random_box(random, size), flip_of(random())}, random());
    }
  }
}

TEST_CASE("real photographs become the CPU's tensors", "[cuda]") {
  const auto folder = test_data("photos");
  if (!folder) return;
  std::mt19937 random(12);
  const BatchRecipe recipe{{224, 224}, kBytesNchw};
  int taken = 0;
  for (auto& [name, file] : files_in(*folder)) {
    if (++taken % 4 != 0 && rounds(1) == 1) continue;
    const Image image = image_of(std::move(file));
    CAPTURE(name);
    check(image, recipe, {random_box(random, image.size()), flip_of(random())}, random());
  }
  REQUIRE(taken > 100);
}

TEST_CASE("all files of unusual make that the kernels take become the CPU's tensors", "[cuda]") {
  constexpr int kUsualSide = 4000;  // one has 7,680 columns
  const auto folder = test_data("jpeg-variants");
  if (!folder) return;
  std::mt19937 random(13);
  const BatchRecipe recipe{{160, 120}, kBytesNchw};
  int taken = 0;
  for (auto& [name, file] : files_in(*folder)) {
    auto coefficients = read_jpeg_coefficients(file);
    if (!coefficients || coefficients->width > kUsualSide * rounds(1) || coefficients->warnings > 0 ||
        !(coefficients->is_ycc || coefficients->is_grey))
      continue;
    const Image image{std::move(file), std::move(*coefficients)};
    const TensorCut cut{random_box(random, image.size()), flip_of(random())};
    CAPTURE(name);
    if (TokenBatch(recipe).add(image.coefficients, cut) != "") continue;
    check(image, recipe, cut, random());
    ++taken;
  }
  REQUIRE(taken > 10);
}

TEST_CASE("a GPU filters as Pillow does, with every filter and in both orders", "[cuda]") {
  std::mt19937 random(14);
  const Size size{131, 173};
  const Image image = make_image(size, 2, 2, 3);
  for (const Filter filter :
       {Filter::kNearest, Filter::kBox, Filter::kBilinear, Filter::kHamming, Filter::kBicubic, Filter::kLanczos}) {
    for (const auto order : {kernels::PassOrder::kAsPillow13, kernels::PassOrder::kColumnsFirst}) {
      for (int i = 0; i < rounds(8); ++i) {
        const Box box = random_box(random, size);
        const int width = i % 4 == 0 ? box.width : 1 + below(random, 200);
        const int height = i % 4 == 1 ? box.height : 1 + below(random, i % 2 == 0 ? 20 : 200);
        check(image, {{width, height}, kBytesNchw, filter, order}, {box, flip_of(random())}, random(), 1 + i);
      }
    }
  }
}

TEST_CASE("a tensor may be a window of what the crop is resampled to", "[cuda]") {
  std::mt19937 random(15);
  const Size size{140, 90};
  const Image image = make_image(size, 2, 1, 4);
  for (const Filter filter : {Filter::kBilinear, Filter::kBicubic, Filter::kLanczos}) {
    for (int i = 0; i < rounds(10); ++i) {
      const Size resized{1 + below(random, 150), 1 + below(random, 150)};
      const Box window = random_box(random, resized);
      const BatchRecipe recipe{{window.width, window.height}, kBytesNchw, filter};
      check(image, recipe, {random_box(random, size), flip_of(random()), resized, window.left, window.top}, random());
    }
  }
}

TEST_CASE("every kind of tensor is the CPU's", "[cuda]") {
  using kernels::ChannelOrder;
  using kernels::DType;
  using kernels::Layout;
  const Image images[] = {make_image({97, 61}, 1, 1, 5), make_image({97, 61}, 1, 1, 6, 1)};
  const kernels::Normalise imagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  std::uint32_t seed = 0;
  for (const Image& image : images) {
    for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
      for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
        for (const ChannelOrder channels : {ChannelOrder::kRgb, ChannelOrder::kBgr, ChannelOrder::kGrey}) {
          kernels::StoreSpec store{.dtype = dtype, .layout = layout, .channels = channels};
          if (++seed % 3 != 0) store.normalise = imagenet;
          if (seed % 5 == 0) store.range = kernels::ValueRange::kRaw;
          check(image, {{45, 33}, store}, {{9, 3, 80, 51}, flip_of(seed)}, seed);
        }
      }
    }
  }
}

TEST_CASE("pictures of every small size and very long ones become the CPU's tensors", "[cuda]") {
  std::uint32_t seed = 0;
  const BatchRecipe recipe{{24, 20}, kBytesNchw};
  for (const ReconstructSampling& sampling : kSamplings) {
    for (const int width : {1, 2, 3, 4, 5, 8, 9, 17}) {
      for (const int height : {1, 2, 3, 16, 17, 33})
        check(make_image({width, height}, sampling.h, sampling.v, ++seed), recipe, {{0, 0, width, height}}, 1);
    }
    for (const Size size : {Size{4097, 3}, Size{3, 4097}})
      check(make_image(size, sampling.h, sampling.v, ++seed), recipe, {{0, 0, size.width, size.height}}, 1);
  }
}

TEST_CASE("photographs of 12 megapixels and panoramas fit, in tiles", "[cuda]") {
  const BatchRecipe recipe{{224, 224}, kBytesNchw};
  for (const Size size : {Size{4000, 3000}, Size{48000, 20}, Size{20, 65500}}) {
    const Image image = make_image(size, 2, 2, 21);
    check(image, recipe, {{0, 0, size.width, size.height}, Flip::kHorizontal}, 1);
  }
  if (!is_taken(1)) return;
  const Image image = make_image({4000, 3000}, 1, 1, 22);
  check(image, recipe, {{700, 400, 900, 2600}}, 2);
}

TEST_CASE("however a tensor is cut into tiles, it is the same", "[cuda]") {
  const Size size{300, 420};
  const Image image = make_image(size, 2, 2, 31);
  const BatchRecipe recipe{{224, 224}, kBytesNchw};
  std::size_t before = 0;
  for (const int wanted : {1, 2, 3, 6, 100}) {
    const TensorCut cut{{11, 7, 280, 400}};
    check(image, recipe, cut, 3, wanted);
    TokenBatch batch(recipe);
    batch.add(image.coefficients, cut, wanted);
    REQUIRE(batch.tiles() >= before);
    before = batch.tiles();
  }
  REQUIRE(before > 3);
}

TEST_CASE("a fast tensor does not depend on tiles or threads, and is near the exact one in either order", "[cuda]") {
  const Image images[] = {make_image({300, 420}, 2, 2, 32), make_image({300, 420}, 1, 1, 33, 1)};
  for (const Image& image : images) {
    for (const Size size : {Size{224, 224}, Size{225, 60}}) {
      BatchRecipe recipe{size, kBytesNchw};
      const TensorCut cut{{11, 7, 280, 400}, Flip::kHorizontal};
      const auto exact = reference_tensor(image.file, image.size(), recipe, cut);
      recipe.fidelity = kernels::cuda::Fidelity::kFast;
      std::optional<std::vector<std::byte>> first;
      for (const int wanted : {1, 3, 100}) {
        TokenBatch batch(recipe);
        REQUIRE(batch.add(image.coefficients, cut, wanted) == "");
        batch.run(static_cast<std::uint32_t>(wanted));
        REQUIRE((batch.tensor(0) == first.value_or(batch.tensor(0))));
        first = batch.tensor(0);
      }
      CHECK(level_difference(*first, exact).mean <= kMostMean);
    }
  }
}

TEST_CASE("images of a batch do not touch each other's tensors, nor what another stage gave up", "[cuda]") {
  std::mt19937 random(16);
  const BatchRecipe recipe{{40, 30}, kBytesNchw};
  TokenBatch batch(recipe);
  std::vector<std::vector<std::byte>> expected;
  for (int i = 0; i < 12; ++i) {
    const Size size{20 + below(random, 80), 20 + below(random, 80)};
    const ReconstructSampling& sampling = kSamplings[i % 6];
    const Image image = make_image(size, sampling.h, sampling.v, random(), i % 5 == 0 ? 1 : 3);
    const TensorCut cut{random_box(random, size), flip_of(random())};
    REQUIRE(batch.add(image.coefficients, cut) == "");
    expected.push_back(reference_tensor(image.file, size, recipe, cut));
  }
  const auto untouched = batch.tensor(7);
  batch.set_status(7, Status::kNotInTime);

  batch.run(5);

  for (std::size_t i = 0; i < expected.size(); ++i) {
    REQUIRE(batch.status(i) == (i == 7 ? Status::kNotInTime : Status::kDone));
    REQUIRE((batch.tensor(i) == (i == 7 ? untouched : expected[i])));
  }
}

TEST_CASE("streams as no encoder makes them become the CPU's tensors, or are left to the CPU", "[cuda]") {
  std::mt19937 random(17);
  int done = 0, left = 0;
  for (int i = 0; i < rounds(150); ++i) {
    const JpegDraw draw{.range = i % 2 == 0 ? JpegDraw::Range::kOrdinary : JpegDraw::Range::kWild,
                        .density = 100 * (i % 7)};
    const JpegFile file = write_jpeg(draw_jpeg(draw, random));
    const Image image = image_of(file.bytes);
    const BatchRecipe recipe{{1 + below(random, 40), 1 + below(random, 40)}, kBytesNchw};
    const TensorCut cut{random_box(random, image.size()), flip_of(random())};
    if (!reconstructs_tokens(image.coefficients)) continue;
    TokenBatch batch(recipe);
    REQUIRE(batch.add(image.coefficients, cut) == "");
    batch.run(random());
    const bool is_done = batch.status(0) == Status::kDone;
    CAPTURE(i);
    REQUIRE((is_done || batch.status(0) == Status::kNotHere));
    if (is_done) REQUIRE((batch.tensor(0) == reference_tensor(image.file, image.size(), recipe, cut)));
    if (!is_done) REQUIRE_FALSE(cpu_takes(image, cut.crop));
    ++(is_done ? done : left);
  }
  REQUIRE(done > rounds(30));
  REQUIRE(left > rounds(10));
}

TEST_CASE("tokens that no entropy decoder makes stay in their block", "[cuda]") {
  std::mt19937 random(18);
  const BatchRecipe recipe{{30, 30}, kBytesNchw};
  int left = 0;
  for (int i = 0; i < rounds(60); ++i) {
    const Image image = make_image({64, 48}, 2, 2, random()), other = make_image({32, 32}, 1, 1, random());
    TokenBatch batch(recipe);
    batch.add(image.coefficients, {{0, 0, 64, 48}});
    const std::size_t of_first = batch.tokens().size();
    batch.add(other.coefficients, {{0, 0, 32, 32}});
    for (int k = 0; k < 1 + i; ++k) batch.tokens()[random() % of_first] = static_cast<kernels::cuda::Token>(random());

    batch.run(random());

    left += batch.status(0) == Status::kNotHere;
    REQUIRE(batch.status(1) == Status::kDone);
    REQUIRE((batch.tensor(1) == reference_tensor(other.file, other.size(), recipe, {{0, 0, 32, 32}})));
  }
  REQUIRE(left > 10);
}

TEST_CASE("what the kernels do not have is said before launch", "[cuda]") {
  std::vector<kernels::cuda::Tile> tiles;
  const kernels::cuda::TensorSpec spec{kernels::PassOrder::kAsPillow13, {}, {}, 1, {}};
  kernels::cuda::ImageJob job{.width = 60000,
                              .height = 60000,
                              .mcu_columns = 7500,
                              .mcu_rows = 7500,
                              .components = 1,
                              .blocks_in_mcu = 1,
                              .component = {{1, 1}},
                              .crop_width = 60000,
                              .crop_height = 60000,
                              .column_weights = kernels::cuda::kComputed,
                              .row_weights = kernels::cuda::kComputed,
                              .tensor_width = 224,
                              .tensor_height = 224,
                              .filter = Filter::kBilinear};
  const auto refusal = [&] { return kernels::cuda::cut_tiles(spec, job, nullptr, 0, 1, tiles); };

  REQUIRE(refusal() == "");
  tiles.clear();
  job.tensor_width = job.tensor_height = 1;
  job.filter = Filter::kBicubic;
  REQUIRE(refusal() == "the crop is too much larger than the tensor for a multiprocessor's shared memory");
  job.filter = Filter::kLanczos;
  REQUIRE(refusal() == "this filter needs weight tables");
  job.component[0].h = 3;
  REQUIRE(refusal() == "the kernels do not have this chroma sampling");
  REQUIRE(tiles.empty());
}

TEST_CASE("a GPU's fast tensors of photographs stay within their bound of the exact ones", "[cuda]") {
  const auto folder = test_data("photos");
  if (!folder) return;
  std::mt19937 random(19);
  LevelDifference worst;
  int taken = 0;
  for (auto& [name, file] : files_in(*folder)) {
    if (++taken % 4 != 0 && rounds(1) == 1) continue;
    const Image image = image_of(std::move(file));
    for (const Filter filter : {Filter::kBox, Filter::kBilinear, Filter::kBicubic}) {
      if (!is_taken(taken / 4 + static_cast<int>(filter))) continue;
      const BatchRecipe recipe{
          .size = {224, 224}, .store = kBytesNchw, .filter = filter, .fidelity = kernels::cuda::Fidelity::kFast};
      const TensorCut cut{training_crop(random, image.size()), flip_of(random())};
      TokenBatch batch(recipe);
      REQUIRE(batch.add(image.coefficients, cut) == "");
      batch.run(random());
      REQUIRE(batch.status(0) == Status::kDone);
      const LevelDifference found =
          level_difference(batch.tensor(0), reference_tensor(image.file, image.size(), recipe, cut));
      CAPTURE(name, found.mean, found.most, cut.crop.width, cut.crop.height);
      CHECK(found.mean <= kMostMean);
      CHECK(found.most <= kMostAnywhere);
      worst = {std::max(worst.mean, found.mean), std::max(worst.most, found.most)};
    }
  }
  WARN("fast beside exact: mean at most " << worst.mean << ", any at most " << worst.most);
}

}  // namespace
}  // namespace millrace::kernels
