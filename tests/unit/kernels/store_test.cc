#include <catch2/catch.hpp>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "kernels/cpu/plane/plane_kernels.h"
#include "kernels/cpu/resample.h"
#include "kernels/cpu/store.h"
#include "kernels/cpu/workspace.h"
#include "kernels/tensor/reference.h"

using namespace millrace::kernels;

namespace {

constexpr DType kDTypes[] = {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32};
constexpr Layout kLayouts[] = {Layout::kNchw, Layout::kNhwc};
constexpr ChannelOrder kOrders[] = {ChannelOrder::kRgb, ChannelOrder::kBgr, ChannelOrder::kGrey};
constexpr Flip kFlips[] = {Flip::kNone, Flip::kHorizontal};
constexpr ValueRange kRanges[] = {ValueRange::kUnit, ValueRange::kRaw};

const Normalise kImageNet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

std::vector<std::uint8_t> noise(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> result(bytes);
  for (std::uint8_t& byte : result) byte = static_cast<std::uint8_t>(random());
  return result;
}

// A tensor of exactly the image's bytes, so that a sanitizer sees every byte too many.
std::vector<std::byte> stored(const StoreSpec& spec, const U8View& picture, Flip flip, Target target) {
  const StoreTable table(spec);
  std::vector<std::byte> tensor(table.image_bytes(picture.size()));
  Workspace workspace(target);
  ImageStore store(table, tensor, picture.size(), picture.channels, flip, workspace);
  for (int y = 0; y < picture.height; ++y) store(y, picture.row(y));
  return tensor;
}

std::vector<std::byte> expected(const StoreSpec& spec, const U8View& picture, Flip flip) {
  std::vector<std::byte> tensor(StoreTable(spec).image_bytes(picture.size()));
  reference::store(spec, picture, flip, tensor);
  return tensor;
}

std::vector<StoreSpec> all_specs() {
  std::vector<StoreSpec> specs;
  for (const DType dtype : kDTypes) {
    for (const Layout layout : kLayouts) {
      for (const ChannelOrder order : kOrders) {
        for (const ValueRange range : kRanges) specs.push_back({dtype, layout, order, range, std::nullopt});
        specs.push_back({dtype, layout, order, ValueRange::kUnit, kImageNet});
      }
    }
  }
  return specs;
}

float float_at(const std::vector<std::byte>& tensor, std::size_t index) {
  float value;
  std::memcpy(&value, tensor.data() + index * sizeof value, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("every type, layout, order, flip and range is stored as computed one by one, on every target",
          "[kernels][store]") {
  for (const int channels : {1, 3}) {
    for (const Size size :
         {Size{1, 2}, Size{15, 3}, Size{16, 1}, Size{63, 2}, Size{64, 2}, Size{65, 2}, Size{224, 3}, Size{131, 1}}) {
      const std::vector<std::uint8_t> pixels = noise(static_cast<std::size_t>(size.width) * size.height * channels, 1);
      const U8View picture{pixels.data(), size.width, size.height, channels, std::ptrdiff_t{size.width} * channels};
      for (const StoreSpec& spec : all_specs()) {
        for (const Flip flip : kFlips) {
          for (const Target target : available_targets()) {
            const bool equal = stored(spec, picture, flip, target) == expected(spec, picture, flip);
            INFO(name_of(target) << " " << size.width << "x" << size.height << " from " << channels
                                 << " channels, dtype " << int(spec.dtype) << " layout " << int(spec.layout)
                                 << " order " << int(spec.channels) << " flip " << int(flip));
            if (!equal) FAIL("differs from the reference");
          }
        }
      }
    }
  }
  SUCCEED();
}

TEST_CASE("whatever mean and deviation normalise, every value of every type is stored as computed one by one",
          "[kernels][store]") {
  std::mt19937 random(5);
  const auto from = [&](float least, float most) {
    return least + (most - least) * static_cast<float>(random() % 100001) / 100000.0F;
  };
  std::vector<std::uint8_t> pixels(256 * 3);
  for (int i = 0; i < 256 * 3; ++i) pixels[i] = static_cast<std::uint8_t>(i / 3);
  const U8View picture{pixels.data(), 256, 1, 3, 768};
  for (int round = 0; round < 400; ++round) {
    Normalise normalise{};
    for (int c = 0; c < 3; ++c) {
      normalise.mean[c] = random() % 8 == 0 ? 0 : from(-1, 2);
      // Down to what leaves float16.
      normalise.std[c] = round % 8 == 0 ? from(1e-6F, 1e-4F) : from(0.05F, 2);
      if (round % 8 == 1) normalise.std[c] *= -1;  // then a value of 0 has a sign
    }
    for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
      const StoreSpec spec{dtype, Layout::kNchw, ChannelOrder::kRgb, ValueRange::kUnit, normalise};
      const std::vector<std::byte> wanted = expected(spec, picture, Flip::kNone);
      for (const Target target : available_targets()) {
        INFO(name_of(target) << " round " << round << " dtype " << int(dtype));
        if (stored(spec, picture, Flip::kNone, target) != wanted) FAIL("differs from the reference");
      }
    }
  }
  SUCCEED();
}

TEST_CASE("elements need no table where models are trained as most are", "[kernels][store]") {
  const Normalise clip{{0.48145466F, 0.4578275F, 0.40821073F}, {0.26862954F, 0.26130258F, 0.27577711F}};
  const Normalise halves{{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}};
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    for (const auto& normalise : {std::optional(kImageNet), std::optional(clip), std::optional(halves), {}}) {
      const StoreTable table({dtype, Layout::kNchw, ChannelOrder::kRgb, ValueRange::kUnit, normalise});
      for (int c = 0; c < 3; ++c) REQUIRE(table.plane(c).line.rounding != StoreLine::Rounding::kNone);
    }
  }
  for (const auto& normalise : {std::optional(kImageNet), std::optional(clip), std::optional(halves), {}}) {
    const StoreTable table({DType::kFloat32, Layout::kNchw, ChannelOrder::kRgb, ValueRange::kUnit, normalise});
    for (int c = 0; c < 3; ++c) REQUIRE(table.plane(c).steps.are_right);
  }
}

TEST_CASE("patches are stored as computed one by one, on every target", "[kernels][store]") {
  const Patches kinds[] = {{14, 14, 2, 2}, {16, 16, 1, 1}, {3, 5, 2, 3}, {64, 2, 1, 2}, {1, 1, 3, 1}, {70, 6, 1, 1}};
  for (const int channels : {1, 3}) {
    for (const Patches& patches : kinds) {
      const Size size{patches.width * patches.merge * 3, patches.height * patches.merge * 2};
      const std::vector<std::uint8_t> pixels = noise(static_cast<std::size_t>(size.width) * size.height * channels, 4);
      const U8View picture{pixels.data(), size.width, size.height, channels, std::ptrdiff_t{size.width} * channels};
      for (StoreSpec spec : all_specs()) {
        if (spec.layout == Layout::kNhwc) continue;
        spec.patches = patches;
        for (const Flip flip : kFlips) {
          for (const Target target : available_targets()) {
            const bool equal = stored(spec, picture, flip, target) == expected(spec, picture, flip);
            INFO(name_of(target) << " patches of " << patches.width << "x" << patches.height << ", merge "
                                 << patches.merge << ", temporal " << patches.temporal << " from " << channels
                                 << " channels, dtype " << int(spec.dtype) << " order " << int(spec.channels)
                                 << " flip " << int(flip));
            if (!equal) FAIL("differs from the reference");
          }
        }
      }
    }
  }
  SUCCEED();
}

TEST_CASE("patches put known pixels where a vision transformer looks for them", "[kernels][store]") {
  std::vector<std::uint8_t> pixels(8 * 4);  // pixel (x, y) is 10 y + x
  for (int i = 0; i < 32; ++i) pixels[i] = static_cast<std::uint8_t>(10 * (i / 8) + i % 8);
  const auto values = [&](const Patches& patches, ChannelOrder order) {
    const StoreSpec spec{DType::kUint8, Layout::kNchw, order, ValueRange::kUnit, {}, patches};
    std::vector<int> result;
    for (const std::byte byte : stored(spec, {pixels.data(), 8, 4, 1, 8}, Flip::kNone, best_target()))
      result.push_back(int(byte));
    return result;
  };

  // Two groups of 2x2 patches, each patch 2x2 pixels.
  REQUIRE(values({2, 2, 2, 1}, ChannelOrder::kGrey) == std::vector<int>{0,  1,  10, 11, 2,  3,  12, 13, 20, 21, 30,
                                                                        31, 22, 23, 32, 33, 4,  5,  14, 15, 6,  7,
                                                                        16, 17, 24, 25, 34, 35, 26, 27, 36, 37});
  // Tiles of 4x4, row by row, and the frames of a channel one after the other.
  const std::vector<int> tiles = values({4, 4, 1, 2}, ChannelOrder::kRgb);
  REQUIRE(tiles.size() == 2 * 3 * 2 * 16);
  REQUIRE(std::vector<int>(tiles.begin(), tiles.begin() + 18) ==
          std::vector<int>{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33, 0, 1});
  REQUIRE(tiles[3 * 2 * 16] == 4);
}

TEST_CASE("a normalised float is ((x / 255) - mean) / std, each step rounded to float", "[kernels][store]") {
  std::vector<std::uint8_t> pixels(256 * 3);
  for (int i = 0; i < 256 * 3; ++i) pixels[i] = static_cast<std::uint8_t>(i / 3);
  const StoreSpec spec{DType::kFloat32, Layout::kNchw, ChannelOrder::kBgr, ValueRange::kRaw, kImageNet};

  const std::vector<std::byte> tensor = stored(spec, {pixels.data(), 256, 1, 3, 768}, Flip::kNone, best_target());

  for (int x = 0; x < 256; ++x) {
    const volatile float unit = static_cast<float>(x) / 255.0F;
    for (int c = 0; c < 3; ++c) {
      const volatile float centred = unit - kImageNet.mean[2 - c];
      const volatile float value = centred / kImageNet.std[2 - c];
      REQUIRE(float_at(tensor, c * 256 + x) == value);
    }
  }
}

TEST_CASE("an unnormalised float is x / 255 in the unit range and x in the raw one", "[kernels][store]") {
  const std::uint8_t pixels[] = {0, 1, 128, 255};

  const auto unit = stored({DType::kFloat32, Layout::kNchw, ChannelOrder::kGrey, ValueRange::kUnit, {}},
                           {pixels, 4, 1, 1, 4}, Flip::kNone, best_target());
  const auto raw = stored({DType::kFloat32, Layout::kNchw, ChannelOrder::kGrey, ValueRange::kRaw, {}},
                          {pixels, 4, 1, 1, 4}, Flip::kNone, best_target());

  for (int i = 0; i < 4; ++i) {
    REQUIRE(float_at(unit, i) == static_cast<float>(pixels[i]) / 255.0F);
    REQUIRE(float_at(raw, i) == static_cast<float>(pixels[i]));
  }
}

TEST_CASE("layouts, orders and flips put known pixels where they belong", "[kernels][store]") {
  const std::uint8_t pixels[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // two by two, RGB
  const U8View picture{pixels, 2, 2, 3, 6};
  const auto bytes = [&](Layout layout, ChannelOrder order, Flip flip) {
    std::vector<int> result;
    for (const std::byte byte :
         stored({DType::kUint8, layout, order, ValueRange::kUnit, {}}, picture, flip, best_target()))
      result.push_back(int(byte));
    return result;
  };

  REQUIRE(bytes(Layout::kNhwc, ChannelOrder::kRgb, Flip::kNone) ==
          std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  REQUIRE(bytes(Layout::kNchw, ChannelOrder::kRgb, Flip::kNone) ==
          std::vector<int>{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12});
  REQUIRE(bytes(Layout::kNchw, ChannelOrder::kBgr, Flip::kNone) ==
          std::vector<int>{3, 6, 9, 12, 2, 5, 8, 11, 1, 4, 7, 10});
  REQUIRE(bytes(Layout::kNhwc, ChannelOrder::kBgr, Flip::kHorizontal) ==
          std::vector<int>{6, 5, 4, 3, 2, 1, 12, 11, 10, 9, 8, 7});
  REQUIRE(bytes(Layout::kNchw, ChannelOrder::kGrey, Flip::kHorizontal) == std::vector<int>{5, 2, 11, 8});
}

TEST_CASE("a resampled picture goes row by row into its tensor", "[kernels][store]") {
  const std::vector<std::uint8_t> pixels = noise(90 * 70 * 3, 3);
  const U8View source{pixels.data(), 90, 70, 3, 270};
  const ResampleSpec spec{3, {90, 70}, {48, 40}, {4, 2, 40, 36}, Filter::kBicubic};
  const StoreSpec store_spec{DType::kBfloat16, Layout::kNchw, ChannelOrder::kRgb, ValueRange::kUnit, kImageNet};
  std::vector<std::uint8_t> window(40 * 36 * 3);
  reference::resample(spec, source, {window.data(), 40, 36, 3, 120});
  const StoreTable table(store_spec);
  std::vector<std::byte> tensor(table.image_bytes({40, 36}));
  Workspace workspace;

  ImageStore store(table, tensor, {40, 36}, 3, Flip::kHorizontal, workspace);
  resample(workspace.plan(spec), source, workspace, store);

  REQUIRE(tensor == expected(store_spec, {window.data(), 40, 36, 3, 120}, Flip::kHorizontal));
}

TEST_CASE("planes are stored as pixels are", "[store]") {
  std::mt19937 random(8);
  for (const Target target : available_targets()) {
    Workspace workspace(target);
    for (int i = 0; i < 300; ++i) {
      StoreSpec spec{.dtype = static_cast<DType>(random() % 4),
                     .layout = static_cast<Layout>(random() % 2),
                     .channels = static_cast<ChannelOrder>(random() % 3)};
      if (random() % 2 == 0) spec.normalise = kImageNet;
      if (random() % 3 == 0) spec.patches = Patches{4, 2, 2, 2};
      const Size size{8 * (1 + static_cast<int>(random() % 20)), 4 * (1 + static_cast<int>(random() % 4))};
      const int channels = random() % 3 == 0 ? 1 : 3;
      const auto bytes = noise(static_cast<std::size_t>(size.width * size.height * channels), static_cast<unsigned>(i));
      const U8View picture{bytes.data(), size.width, size.height, channels, std::ptrdiff_t{size.width} * channels};
      const StoreTable table(spec);
      std::vector<std::byte> made(table.image_bytes(size)), expected(made.size());

      ImageStore store(table, made, size, channels, Flip::kHorizontal, workspace);
      for (int y = 0; y < size.height; ++y) {
        std::vector<std::uint8_t> planes[3];
        const std::uint8_t* rows[3] = {};
        for (int c = 0; c < channels; ++c) {
          for (int x = 0; x < size.width; ++x) planes[c].push_back(picture.row(y)[x * channels + c]);
          planes[c].resize(planes[c].size() + kPlaneSlack);
          rows[c] = planes[c].data();
        }
        store.store_planes(y, rows);
      }
      reference::store(spec, picture, Flip::kNone, expected);

      INFO(name_of(target) << " " << size.width << "x" << size.height << " channels " << channels);
      REQUIRE(made == expected);
    }
  }
}
