// Tensors of turned pictures and tensors of patches: those of libjpeg-turbo and the CPU's reference functions, bit by
// bit.
#include <algorithm>
#include <catch2/catch.hpp>

#include "kernels/cuda/plan/host_run.h"
#include "kernels/cuda/plan/tile_plan.h"
#include "tests/support/pictures/level_difference.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/cuda/reconstruct_rig.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace::kernels {
namespace {

using kernels::cuda::BatchRecipe;
using kernels::cuda::Fidelity;
using kernels::cuda::Status;

struct TurnedImage {
  File file;
  JpegCoefficients coefficients;
  Size size() const { return {coefficients.width, coefficients.height}; }
};

TurnedImage make_turned_image(Size size, int h, int v, std::uint32_t seed, std::uint32_t channels = 3) {
  File file = make_jpeg({.pixels = make_pixels(static_cast<std::uint32_t>(size.width),
                                               static_cast<std::uint32_t>(size.height), channels, seed),
                         .quality = 50 + static_cast<int>(seed % 50),
                         .h_samp = h,
                         .v_samp = v});
  auto coefficients = read_jpeg_coefficients(file);
  REQUIRE(coefficients);
  return {std::move(file), std::move(*coefficients)};
}

struct TurnedSampling {
  int h, v;
};
constexpr TurnedSampling kTurnedSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}};
constexpr Filter kFilters[] = {Filter::kNearest, Filter::kBox,     Filter::kBilinear,
                               Filter::kHamming, Filter::kBicubic, Filter::kLanczos};

constexpr std::array<Orientation, 8> orientations() {
  std::array<Orientation, 8> all{};
  for (int tag = 1; tag <= 8; ++tag) all[static_cast<std::size_t>(tag - 1)] = kernels::orientation_of(tag);
  return all;
}

Flip turned_flip_of(std::uint32_t draw) {
  return draw % 2 == 0 ? Flip::kNone : Flip::kHorizontal;
}

// A crop of the turned picture, or all of it.
Box turned_box(std::mt19937& random, const TurnedImage& image, Orientation orientation) {
  const Size size = kernels::oriented(image.size(), orientation);
  return below(random, 4) == 0 ? Box{0, 0, size.width, size.height} : random_box(random, size);
}

std::vector<std::byte> made(const TurnedImage& image, const BatchRecipe& recipe, const TensorCut& cut,
                            std::uint32_t seed, int tiles = 1) {
  TokenBatch batch(recipe);
  REQUIRE(batch.add(image.coefficients, cut, tiles) == "");
  batch.run(seed);
  REQUIRE(batch.status(0) == Status::kDone);
  return batch.tensor(0);
}

void check_turned(const TurnedImage& image, const BatchRecipe& recipe, const TensorCut& cut, std::uint32_t seed,
                  int tiles = 1) {
  CAPTURE(image.size().width, image.size().height, static_cast<int>(cut.orientation), cut.crop.left, cut.crop.top,
          cut.crop.width, cut.crop.height, recipe.size.width, recipe.size.height, cut.left, cut.top,
          static_cast<int>(cut.flip), static_cast<int>(recipe.filter), static_cast<int>(recipe.order), seed, tiles);
  REQUIRE((made(image, recipe, cut, seed, tiles) == reference_tensor(image.file, image.size(), recipe, cut)));
}

TEST_CASE("a turned picture's tensor is the CPU's, whatever the sampling, the crop and the filter", "[cuda][turned]") {
  std::mt19937 random(31);
  for (const Orientation orientation : orientations()) {
    for (const TurnedSampling& sampling : kTurnedSamplings) {
      for (const Filter filter : kFilters) {
        for (int i = 0; i < rounds(2); ++i) {
          const TurnedImage image =
              make_turned_image({1 + below(random, 110), 1 + below(random, 110)}, sampling.h, sampling.v, random());
          const BatchRecipe recipe{.size = {1 + below(random, 50), 1 + below(random, 50)},
                                   .store = {.layout = i % 2 == 0 ? kernels::Layout::kNchw : kernels::Layout::kNhwc},
                                   .filter = filter};
          check_turned(image, recipe,
                       {.crop = turned_box(random, image, orientation),
                        .flip = turned_flip_of(random()),
                        .orientation = orientation},
                       random(), 1 + below(random, 5));
        }
      }
    }
  }
}

TEST_CASE("a turned picture's passes come in the order of the picture that is turned first", "[cuda][turned]") {
  std::mt19937 random(32);
  const TurnedImage image = make_turned_image({151, 149}, 2, 2, 3);
  for (const Orientation orientation : orientations()) {
    for (const auto order : {kernels::PassOrder::kAsPillow13, kernels::PassOrder::kColumnsFirst}) {
      for (const Size size : {Size{140, 20}, Size{20, 140}, Size{60, 60}, Size{151, 50}, Size{50, 149}, Size{149, 151}})
        check_turned(image, {.size = size, .filter = Filter::kBicubic, .order = order},
                     {.crop = turned_box(random, image, orientation),
                      .flip = turned_flip_of(random()),
                      .orientation = orientation},
                     random(), 1 + below(random, 4));
    }
  }
}

TEST_CASE("a window counts in the turned picture", "[cuda][turned]") {
  std::mt19937 random(33);
  const TurnedImage image = make_turned_image({140, 91}, 2, 1, 4);
  for (const Orientation orientation : orientations()) {
    for (const Filter filter : kFilters) {
      for (int i = 0; i < rounds(4); ++i) {
        const Size resized{1 + below(random, 150), 1 + below(random, 150)};
        const Box window = random_box(random, resized);
        check_turned(image, {.size = {window.width, window.height}, .filter = filter},
                     {turned_box(random, image, orientation), turned_flip_of(random()), resized, window.left,
                      window.top, orientation},
                     random());
      }
    }
  }
}

TEST_CASE("small and very long pictures are turned, and large ones in tiles", "[cuda][turned]") {
  std::uint32_t seed = 0;
  const BatchRecipe recipe{.size = {24, 20}};
  for (const Orientation orientation : orientations()) {
    for (const Size size :
         {Size{1, 1}, Size{1, 9}, Size{9, 1}, Size{2, 3}, Size{17, 16}, Size{3, 1500}, Size{1500, 3}, Size{701, 503}}) {
      const Size turned = kernels::oriented(size, orientation);
      ++seed;
      check_turned(
          make_turned_image(size, 2, 2, seed), recipe,
          {.crop = {0, 0, turned.width, turned.height}, .flip = turned_flip_of(seed), .orientation = orientation},
          seed);
    }
  }
}

TEST_CASE("every kind of tensor of a turned picture is the CPU's", "[cuda][turned]") {
  std::mt19937 random(34);
  const TurnedImage images[] = {make_turned_image({97, 61}, 1, 1, 5), make_turned_image({97, 61}, 1, 1, 6, 1)};
  const kernels::Normalise imagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    for (const auto layout : {kernels::Layout::kNchw, kernels::Layout::kNhwc}) {
      for (const ChannelOrder channels : {ChannelOrder::kRgb, ChannelOrder::kBgr, ChannelOrder::kGrey}) {
        for (const Orientation orientation : orientations()) {
          const TurnedImage& image = images[below(random, 5) == 0 ? 1 : 0];
          check_turned(image,
                       {{44, 32}, {.dtype = dtype, .layout = layout, .channels = channels, .normalise = imagenet}},
                       {.crop = turned_box(random, image, orientation),
                        .flip = turned_flip_of(random()),
                        .orientation = orientation},
                       random(), 1 + below(random, 3));
        }
      }
    }
  }
}

// A tensor of one to four groups a side, as a window of a little more.
struct PatchDraw {
  BatchRecipe recipe;
  TensorCut cut;
};

PatchDraw draw_patches(std::mt19937& random, const Patches& patches, Size picture, const kernels::StoreSpec& store) {
  const Size size{patches.width * patches.merge * (1 + below(random, 4)),
                  patches.height * patches.merge * (1 + below(random, 4))};
  const int left = below(random, 9), top = below(random, 9);
  PatchDraw draw{{.size = size, .store = store, .filter = kFilters[below(random, 6)]},
                 {.crop = random_box(random, picture), .flip = turned_flip_of(random()), .left = left, .top = top}};
  draw.recipe.store.patches = patches;
  draw.cut.resized = {size.width + left + below(random, 9), size.height + top + below(random, 9)};
  return draw;
}

TEST_CASE("patches are the CPU's, for every element type, channel order and orientation", "[cuda][turned][patches]") {
  constexpr Patches kKinds[] = {{14, 14, 2, 2}, {16, 9, 1, 1}, {3, 5, 3, 4}, {2, 7, 2, 1}, {1, 1, 4, 3}, {28, 6, 1, 2}};
  std::mt19937 random(35);
  const TurnedImage images[] = {make_turned_image({131, 117}, 2, 2, 7), make_turned_image({90, 120}, 1, 1, 8, 1)};
  const kernels::Normalise imagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    for (const ChannelOrder channels : {ChannelOrder::kRgb, ChannelOrder::kBgr, ChannelOrder::kGrey}) {
      for (const Patches& patches : kKinds) {
        for (const Orientation orientation : orientations()) {
          const TurnedImage& image = images[below(random, 5) == 0 ? 1 : 0];
          PatchDraw draw = draw_patches(random, patches, kernels::oriented(image.size(), orientation),
                                        {.dtype = dtype, .channels = channels, .normalise = imagenet});
          draw.cut.orientation = orientation;
          CAPTURE(patches.width, patches.height, patches.merge, patches.temporal, static_cast<int>(dtype),
                  static_cast<int>(channels));
          check_turned(image, draw.recipe, draw.cut, random(), 1 + below(random, 5));
        }
      }
    }
  }
}

TEST_CASE("patches do not depend on how the tensor is cut into tiles, even or odd", "[cuda][patches]") {
  const BatchRecipe recipe{.size = {252, 168}, .store = {.dtype = DType::kFloat16, .patches = Patches{14, 14, 2, 2}}};
  for (const Size size : {Size{900, 700}, Size{2500, 120}, Size{4000, 120}}) {
    const TurnedImage image = make_turned_image(size, 2, 2, 9);
    for (const Flip flip : {Flip::kNone, Flip::kHorizontal}) {
      const TensorCut cut{.crop = {3, 5, size.width - 10, size.height - 10}, .flip = flip};
      for (const int wanted : {1, 40}) check_turned(image, recipe, cut, 3, wanted);
    }
  }
}

TEST_CASE("a fast tensor of a turned picture is near the exact one", "[cuda][turned]") {
  constexpr double kMeanBound = 1.0;  // kernels/cuda/README.md
  constexpr int kAnywhereBound = 64;
  const auto folder = test_data("photos");
  if (!folder) return;
  std::mt19937 random(36);
  LevelDifference worst;
  std::size_t taken = 0;
  for (auto& [name, file] : files_in(*folder)) {
    if (++taken % 8 != 0 && rounds(1) == 1) continue;
    auto coefficients = read_jpeg_coefficients(file);
    REQUIRE(coefficients);
    const TurnedImage image{std::move(file), std::move(*coefficients)};
    const Orientation orientation = orientations()[taken / 8 % 8];
    const Size turned = kernels::oriented(image.size(), orientation);
    for (const Filter filter : {Filter::kBilinear, Filter::kBicubic}) {
      BatchRecipe recipe{.size = {224, 224}, .filter = filter};
      const TensorCut cut{
          .crop = {0, 0, turned.width, turned.height}, .flip = turned_flip_of(random()), .orientation = orientation};
      const auto exact = reference_tensor(image.file, image.size(), recipe, cut);
      recipe.fidelity = Fidelity::kFast;
      const LevelDifference found = level_difference(made(image, recipe, cut, random()), exact);
      CAPTURE(name, found.mean, found.most, static_cast<int>(orientation), static_cast<int>(filter));
      CHECK(found.mean <= kMeanBound);
      CHECK(found.most <= kAnywhereBound);
      worst = {std::max(worst.mean, found.mean), std::max(worst.most, found.most)};
    }
  }
  REQUIRE(taken > 100);
  WARN("fast beside exact, turned: mean at most " << worst.mean << ", any at most " << worst.most);
}

TEST_CASE("a fast tensor of a picture on its side takes no more tiles than that of an upright one", "[cuda][turned]") {
  const TurnedImage image = make_turned_image({1200, 900}, 2, 2, 10);
  const auto tiles = [&](Orientation orientation, Fidelity fidelity) {
    const Size size = kernels::oriented(image.size(), orientation);
    TokenBatch batch({.size = {96, 96}, .fidelity = fidelity});
    REQUIRE(batch.add(image.coefficients, {.crop = {0, 0, size.width, size.height}, .orientation = orientation}) == "");
    return batch.tiles();
  };

  REQUIRE(tiles(Orientation::kRotate90, Fidelity::kFast) == tiles(Orientation::kUpright, Fidelity::kFast));
  REQUIRE(tiles(Orientation::kRotate90, Fidelity::kExact) > tiles(Orientation::kUpright, Fidelity::kExact));
}

// From files, as the planner turns requests into jobs.
TEST_CASE("a batch of files in all orientations, of patches or not, becomes the CPU's tensors", "[cuda][turned]") {
  std::mt19937 random(37);
  for (const Filter filter : {Filter::kBilinear, Filter::kLanczos, Filter::kNearest}) {
    for (const bool patches : {false, true}) {
      BatchRecipe recipe{.size = {48, 24}, .filter = filter};
      if (patches) recipe.store.patches = Patches{4, 6, 2, 2};
      REQUIRE(is_possible(recipe));
      std::vector<File> files;
      std::vector<TensorCut> cuts;
      std::vector<kernels::cuda::ImageRequest> requests;
      std::vector<std::uint8_t> encoded;
      for (int i = 0; i < 16; ++i) {
        files.push_back(make_jpeg({.pixels = make_pixels(static_cast<std::uint32_t>(40 + below(random, 120)),
                                                         static_cast<std::uint32_t>(40 + below(random, 120)), 3, 5),
                                   .h_samp = 1 + i % 2,
                                   .restart_interval = i % 3 == 0 ? 4 : 0}));
      }
      for (int i = 0; i < 16; ++i) {
        const auto bytes = file_bytes(files[static_cast<std::size_t>(i)]);
        const Orientation orientation = orientations()[static_cast<std::size_t>(i % 8)];
        const Size stored = kernels::jpeg::read_header(bytes)->size;
        TensorCut cut{.crop = random_box(random, kernels::oriented(stored, orientation)),
                      .flip = turned_flip_of(random()),
                      .orientation = orientation};
        kernels::cuda::ImageRequest request{.file_untrusted = bytes,
                                            .at = encoded.size(),
                                            .crop = cut.crop,
                                            .orientation = orientation,
                                            .flip = cut.flip};
        if (i >= 8) {
          cut.resized = request.resized = {48 + below(random, 30), 24 + below(random, 30)};
          request.window = {below(random, request.resized.width - 47), below(random, request.resized.height - 23), 48,
                            24};
          cut.left = request.window.left, cut.top = request.window.top;
        }
        encoded.insert(encoded.end(), bytes.begin(), bytes.end());
        requests.push_back(request);
        cuts.push_back(cut);
      }
      kernels::cuda::Planner planner(recipe, {.wanted_tiles = 40});
      kernels::cuda::HostRunner runner;

      const auto& plan = planner.plan(requests);
      const auto batch = runner.run(plan, encoded, random());

      for (std::size_t i = 0; i < requests.size(); ++i) {
        CAPTURE(i, static_cast<int>(filter), patches, plan.refusals[i]);
        REQUIRE(plan.refusals[i].empty());
        REQUIRE(batch.statuses[i] == Status::kDone);
        const Size stored = kernels::jpeg::read_header(requests[i].file_untrusted)->size;
        const auto begin = batch.tensors.begin() + static_cast<std::ptrdiff_t>(i * plan.tensor_bytes);
        REQUIRE((std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(plan.tensor_bytes)) ==
                 reference_tensor(files[i], stored, recipe, cuts[i])));
      }
    }
  }
}

TEST_CASE("a crop that lies in the stored picture alone, or in the turned one, is told apart", "[cuda][plan]") {
  const File file = make_jpeg({.pixels = make_pixels(60, 40, 3, 1)});
  kernels::cuda::Planner planner({.size = {8, 8}});
  const auto refusal = [&](const Box& crop, Orientation orientation) {
    const kernels::cuda::ImageRequest request{
        .file_untrusted = file_bytes(file), .crop = crop, .orientation = orientation};
    return planner.plan({&request, 1}).refusals[0];
  };

  REQUIRE(refusal({50, 0, 10, 40}, Orientation::kRotate180) == "");
  REQUIRE(refusal({0, 50, 40, 10}, Orientation::kRotate90) == "");
  REQUIRE(refusal({50, 0, 10, 40}, Orientation::kRotate90) == "the crop lies outside the image");
  REQUIRE(refusal({0, 50, 40, 10}, Orientation::kFlip) == "the crop lies outside the image");
}

TEST_CASE("the frames of patches count towards a tensor's size", "[cuda][plan]") {
  const kernels::cuda::ImageJob job{.components = 1,
                                    .blocks_in_mcu = 1,
                                    .component = {{1, 1}},
                                    .crop_width = 1,
                                    .tensor_width = 8192,
                                    .tensor_height = 8192};
  const auto refusal = [&](int frames) {
    const auto spec =
        kernels::cuda::tensor_spec({.size = {8192, 8192}, .store = {.patches = Patches{16, 16, 2, frames}}});
    std::vector<kernels::cuda::Tile> tiles;
    return kernels::cuda::cut_tiles(spec, job, nullptr, 0, 1, tiles);
  };

  REQUIRE(refusal(11) == "the tensor has more than 2 GiB");
  REQUIRE(refusal(10) != "the tensor has more than 2 GiB");
}

}  // namespace
}  // namespace millrace::kernels
