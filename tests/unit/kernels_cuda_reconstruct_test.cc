// The CUDA reconstruction on the host executor: tensors beside those of libjpeg-turbo and the CPU's reference
// functions, bit by bit.
#include <catch2/catch.hpp>

#include "kernels/cuda/tile_plan.h"
#include "tests/support/rounds.h"
#include "tests/support/test_data.h"
#include "tests/support/test_images.h"
#include "tests/unit/cuda_reconstruct_rig.h"
#include "tests/unit/jpeg_rig.h"

namespace millrace {
namespace {

using kernels::Box;
using kernels::Filter;
using kernels::Flip;
using kernels::Size;
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

struct Sampling {
  int h, v;
};
constexpr Sampling kSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}};

// One image after the other in a batch of its own.
void check(const Image& image, const TensorRecipe& recipe, const TensorCut& cut, std::uint32_t seed, int tiles = 1) {
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

Flip flip_of(std::uint32_t draw) {
  return draw % 2 == 0 ? Flip::kNone : Flip::kHorizontal;
}

}  // namespace

TEST_CASE("a GPU's tensor is the CPU's, whatever the sampling and the crop", "[cuda]") {
  std::mt19937 random(11);
  for (const Sampling& sampling : kSamplings) {
    for (int i = 0; i < rounds(25); ++i) {
      const Size size{1 + below(random, 120), 1 + below(random, 120)};
      const Image image = make_image(size, sampling.h, sampling.v, random());
      const TensorRecipe recipe{{1 + below(random, 60), 1 + below(random, 60)}, kBytesNchw};
      check(image, recipe, {random_box(random, size), flip_of(random())}, random());
    }
  }
}

TEST_CASE("real photographs become the CPU's tensors", "[cuda]") {
  const auto folder = test_data("photos");
  if (!folder) return;
  std::mt19937 random(12);
  const TensorRecipe recipe{{224, 224}, kBytesNchw};
  int taken = 0;
  for (auto& [name, file] : files_in(*folder)) {
    if (++taken % 4 != 0 && rounds(1) == 1) continue;
    const Image image = image_of(std::move(file));
    CAPTURE(name);
    check(image, recipe, {random_box(random, image.size()), flip_of(random())}, random());
  }
  REQUIRE(taken > 100);
}

}  // namespace millrace
