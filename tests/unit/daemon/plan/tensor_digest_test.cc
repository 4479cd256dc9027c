#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "daemon/plan/tensor_digest.h"

namespace millrace {
namespace {

std::uint64_t digest(const Recipe& recipe, const SampleOverrides& own = {}, Fidelity fidelity = Fidelity::kExact,
                     std::uint32_t max_side = 1000, std::uint64_t seed = 7) {
  return tensor_digest(recipe, own, fidelity, max_side, seed);
}

}  // namespace

TEST_CASE("whatever decides a tensor's bytes changes its digest", "[plan]") {
  const Recipe base = Recipe::evaluate(256, 224);
  std::vector<Recipe> recipes(16, base);
  recipes[1].ignore_orientation = true;
  recipes[2].crop = CentreCrop{{10, 20}};
  recipes[3].crop = CentreCrop{{20, 10}};
  recipes[4].crop = GridCell{2, 2, 0, 1};
  recipes[5].crop = GridCell{2, 2, 1, 0};
  recipes[6].resize = ShorterSide{256, 300};
  recipes[7].resize = LongerSide{256};
  recipes[8].filter = Filter::kBicubic;
  recipes[9].centre_crop = Size{224, 225};
  recipes[10].centre_crop.reset();
  recipes[11].layout = Layout::kNhwc;
  recipes[12].channels = Channels::kBgr;
  recipes[13].patches = Patches{{14, 14}, 2, 2};
  recipes[14].patches = Patches{{14, 14}, 2, 1};
  recipes[15].centre_rounding = CentreRounding::kDown;

  std::set<std::uint64_t> digests;
  for (const Recipe& recipe : recipes) digests.insert(digest(recipe));
  digests.insert(digest(base, {.box = Box{0, 0, 5, 6}}));
  digests.insert(digest(base, {.box = Box{0, 0, 6, 5}}));
  digests.insert(digest(base, {.size = Size{5, 6}}));
  digests.insert(digest(base, {}, Fidelity::kFast));
  digests.insert(digest(base, {}, Fidelity::kExact, 1001));
  digests.insert(digest(base, {}, Fidelity::kExact, 1000, 8));

  REQUIRE(digests.size() == recipes.size() + 6);
  REQUIRE_FALSE(digests.contains(0));
  REQUIRE(digest(base) == digest(Recipe::evaluate(256, 224)));
}

TEST_CASE("a tensor that chance decides, or of wider elements, has no digest", "[plan]") {
  Recipe flipped = Recipe::evaluate(256, 224), cropped = flipped;
  flipped.flip_probability = 0.5F;
  cropped.crop = RandomResizedCrop{};

  REQUIRE(digest(Recipe::train(224)) == 0);
  REQUIRE(digest(flipped) == 0);
  REQUIRE(digest(cropped) == 0);
  REQUIRE(digest(cropped, {.box = Box{0, 0, 5, 6}}) != 0);  // its own box, so chance does not
  REQUIRE(digest(Recipe::evaluate(256, 224).normalised(DType::kFloat32)) == 0);
}

TEST_CASE("where a tensor lies does not change it", "[plan]") {
  Recipe packed = Recipe::evaluate(256, 224);
  packed.packing = Packing::kPacked;

  REQUIRE(digest(packed) == digest(Recipe::evaluate(256, 224)));
}

}  // namespace millrace
