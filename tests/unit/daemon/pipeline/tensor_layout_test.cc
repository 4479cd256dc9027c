#include "daemon/pipeline/batch/tensor_layout.h"

#include <catch2/catch.hpp>
#include <memory>

#include "proto/shm/segment_layout.h"

namespace millrace {
namespace {

using Axes = std::vector<std::uint64_t>;

Recipe grey() {
  return {.resize = ExactSize{{4, 2}}, .channels = Channels::kGrey};
}

std::unique_ptr<const TensorLayout> layout_of(Recipe recipe) {
  return *TensorLayout::create(std::make_shared<const Recipe>(std::move(recipe)), 1000);
}

TEST_CASE("images of one size are the first axis, each dense", "[pipeline]") {
  const auto layout = layout_of(grey());

  const Axes shape = layout->shape(4, Bytes{32});

  REQUIRE(shape == Axes{4, 1, 2, 4});
  REQUIRE(dense_strides(shape, Bytes{1}) == Axes{8, 8, 4, 1});
  REQUIRE(layout->least_bytes(4) == Bytes{32});
}

TEST_CASE("a tensor whose channels come last says so in its shape", "[pipeline]") {
  Recipe recipe = grey();
  recipe.channels = Channels::kRgb;
  recipe.layout = Layout::kNhwc;

  REQUIRE(layout_of(recipe)->shape(4, Bytes{96}) == Axes{4, 2, 4, 3});
}

TEST_CASE("an image of one size has the place of its number, and any other is refused", "[pipeline]") {
  const auto layout = layout_of(grey());

  const Result<SlotRange> fits = layout->place(3, {.window = {0, 0, 4, 2}});
  const Result<SlotRange> turned = layout->place(3, {.window = {0, 0, 2, 4}});

  REQUIRE(*fits == SlotRange{24, Bytes{8}});
  REQUIRE(turned.error().code == Code::kInvalid);
  REQUIRE_THAT(turned.error().message, Catch::Contains("comes out as 2x4 in a tensor of 4x2"));
}

TEST_CASE("views lie one after the other, each at a multiple of 64 bytes, and are one axis together", "[pipeline]") {
  Recipe small = grey();
  small.resize = ExactSize{{3, 1}};
  const auto layout = layout_of(Recipe::of_views({grey(), small, grey()}));

  REQUIRE(layout->least_bytes(9) == Bytes{128 + 64 + 128});
  REQUIRE(layout->place_of_view(0, 8, 9) == SlotRange{64, Bytes{8}});
  REQUIRE(layout->place_of_view(1, 0, 9) == SlotRange{128, Bytes{3}});
  REQUIRE(layout->place_of_view(1, 2, 9) == SlotRange{134, Bytes{3}});
  REQUIRE(layout->place_of_view(2, 1, 9) == SlotRange{200, Bytes{8}});
  REQUIRE(layout->shape(9, Bytes{320}) == Axes{320});
  REQUIRE(layout->shape_of_view(1, 7) == Axes{7, 1, 1, 3});
}

TEST_CASE("a sample of which one view comes out in another size is refused", "[pipeline]") {
  const auto layout = layout_of(Recipe::of_views({grey(), grey()}));
  const SampleGeometry fits{.window = {0, 0, 4, 2}}, turned{.window = {0, 0, 2, 4}};

  REQUIRE(*layout->place(3, {.views = {fits, fits}}) == SlotRange{24, Bytes{8}});
  REQUIRE_FALSE(layout->place(3, {.views = {fits, turned}}));
}

TEST_CASE("a packed tensor is one axis of elements, whatever their type", "[pipeline]") {
  const auto dtype = GENERATE(DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32);
  Recipe recipe = grey();
  recipe.packing = Packing::kPacked;
  recipe.dtype = dtype;
  const Bytes tensor{2 * kPackedAlignment + 8};

  const Axes shape = layout_of(recipe)->shape(3, tensor);

  REQUIRE(shape == Axes{tensor.count / dtype_bytes(dtype).count});
  REQUIRE(dense_strides(shape, dtype_bytes(dtype)) == Axes{dtype_bytes(dtype).count});
}

TEST_CASE("a packed tensor of patches has an axis for them, each dense", "[pipeline]") {
  Recipe recipe = grey();
  recipe.packing = Packing::kPacked;
  recipe.patches = Patches{.size = {2, 1}, .temporal = 2};
  const auto layout = layout_of(recipe);

  const Axes shape = layout->shape(3, Bytes{48});

  REQUIRE(shape == Axes{12, 1, 2, 1, 2});
  REQUIRE(dense_strides(shape, Bytes{1}) == Axes{4, 4, 2, 2, 1});
  REQUIRE(layout->after(Bytes{17}) == Bytes{17});
}

TEST_CASE("of packed images too large for the slot the largest give way, the later one of two alike", "[pipeline]") {
  Recipe recipe = grey();
  recipe.packing = Packing::kPacked;
  const auto layout = layout_of(recipe);
  const std::vector<std::optional<Bytes>> sizes{Bytes{128}, Bytes{256}, std::nullopt, Bytes{256}, Bytes{64}};

  const Bytes all = shm::slot_bytes(Bytes{704}, 5);
  const Overflow fits = overflow(*layout, sizes, all);
  const Overflow by_one = overflow(*layout, sizes, all - Bytes{1});
  const Overflow by_more = overflow(*layout, sizes, shm::slot_bytes(Bytes{192}, 5));

  REQUIRE(fits.samples.empty());
  REQUIRE(by_one.samples == std::vector<std::uint32_t>{3});
  REQUIRE(by_one.needed == all);
  REQUIRE(by_more.samples == std::vector<std::uint32_t>{3, 1});
}

TEST_CASE("a recipe without sense has no layout", "[pipeline]") {
  Recipe recipe = grey();
  recipe.resize = ExactSize{{0, 2}};

  REQUIRE(TensorLayout::create(std::make_shared<const Recipe>(recipe), 1000).error().code == Code::kInvalid);
}

}  // namespace
}  // namespace millrace
