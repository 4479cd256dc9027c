// Packed batches: images of many sizes in one tensor, in every element type, layout, channel order and fidelity.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "client/cli/picture/to_pixels.h"
#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

constexpr std::uint32_t kPackedImages = 5;
constexpr DType kDTypes[] = {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32};
constexpr Layout kLayouts[] = {Layout::kNchw, Layout::kNhwc};
constexpr Channels kChannels[] = {Channels::kRgb, Channels::kBgr, Channels::kGrey};
constexpr Fidelity kFidelities[] = {Fidelity::kExact, Fidelity::kFast};

// Pixels as they are in every type: float16 and bfloat16 hold 0 ... 255 exactly.
Recipe raw(Recipe recipe, DType dtype) {
  recipe.dtype = dtype;
  recipe.range = ValueRange::kRaw;
  return recipe;
}

// A daemon, pictures of odd sizes, and a session with room for all of them in any type.
struct PackedMill {
  PackedMill()
      : paths(write_image_folder(folder / "pictures", {.images = kPackedImages, .classes = 0, .max_side = 75})),
        daemon({.roots = {folder.path()}}),
        session(need(daemon.connect().open_session({.slots = 4, .slot_bytes = 4_MiB}))) {}

  Batch make(const Recipe& recipe, Fidelity fidelity, const std::vector<std::string>& of,
             OnError on_error = OnError::kFail) {
    BatchRequest request{.recipe = recipe, .on_error = on_error, .fidelity = fidelity};
    for (const std::string& path : of) request.samples.push_back({.source = Path{path}});
    Batch batch = need(session.wait(need(session.submit(std::move(request)))));
    if (batch.failure) throw unexpected(*batch.failure);
    return batch;
  }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
  Session session;
};

std::vector<float> numbers_of(std::span<const std::byte> bytes, DType dtype) {
  const std::size_t size = dtype_bytes(dtype).count;
  std::vector<float> numbers(bytes.size() / size);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::uint16_t half = 0;
    if (size == 1) numbers[i] = std::to_integer<std::uint8_t>(bytes[i]);
    if (size == 2) std::memcpy(&half, &bytes[i * 2], 2);
    if (dtype == DType::kFloat16) numbers[i] = cli::from_float16(half);
    if (dtype == DType::kBfloat16) numbers[i] = cli::from_bfloat16(half);
    if (dtype == DType::kFloat32) std::memcpy(&numbers[i], &bytes[i * 4], 4);
  }
  return numbers;
}

// Whether image `index` of `tensor`, read as elements of the tensor, is `expected`.
bool holds(const TensorView& tensor, std::size_t index, const std::vector<float>& expected) {
  const std::size_t size = dtype_bytes(tensor.dtype()).count;
  const std::vector<float> all = numbers_of(tensor.data(), tensor.dtype());
  const auto begin = static_cast<std::size_t>(tensor.pixels(index).data() - tensor.data().data());
  return begin % 64 == 0 && tensor.pixels(index).size() == expected.size() * size &&
         begin / size + expected.size() <= all.size() &&
         std::equal(expected.begin(), expected.end(), all.begin() + static_cast<std::ptrdiff_t>(begin / size));
}

// One axis of elements, one after the other, that are all of the tensor's bytes.
void check_is_flat(const TensorView& tensor) {
  const std::uint64_t size = dtype_bytes(tensor.dtype()).count;
  REQUIRE(tensor.shape().size() == 1);
  REQUIRE(tensor.shape()[0] * size == tensor.data().size());
  REQUIRE(std::vector(tensor.strides().begin(), tensor.strides().end()) == std::vector{size});
}

// Every image of packed batches after `recipe` is the one of a one-size uint8 batch of it alone.
void check_packed(PackedMill& mill, Recipe recipe) {
  for (const Fidelity fidelity : kFidelities) {
    for (const Layout layout : kLayouts) {
      for (const Channels channels : kChannels) {
        recipe.layout = layout;
        recipe.channels = channels;
        std::vector<std::vector<float>> expected;
        for (const DType dtype : kDTypes) {
          const Batch packed = mill.make(raw(recipe, dtype), fidelity, mill.paths);
          CAPTURE(static_cast<int>(fidelity), static_cast<int>(layout), static_cast<int>(channels), dtype_name(dtype));
          REQUIRE(packed.tensor.dtype() == dtype);
          check_is_flat(packed.tensor);
          for (std::uint32_t i = 0; i < kPackedImages; ++i) {
            if (dtype == DType::kUint8) {
              Recipe alone = recipe;
              alone.packing = Packing::kOneSize;
              alone.resize = ExactSize{packed.tensor.sample(i).size};
              const Batch one = mill.make(alone, fidelity, {mill.paths[i]});
              expected.push_back(numbers_of(one.tensor.data(), DType::kUint8));
            }
            REQUIRE(holds(packed.tensor, i, expected[i]));
          }
        }
      }
    }
  }
}

TEST_CASE("packed thumbnails hold the same pixels in every type, layout, channel order and fidelity", "[system]") {
  PackedMill mill;
  check_packed(mill, Recipe::thumbnail(37));
}

TEST_CASE("packed images in their own sizes hold the same pixels in every type, layout, channel order and fidelity",
          "[system]") {
  PackedMill mill;
  check_packed(mill, Recipe{.packing = Packing::kPacked});
}

TEST_CASE("packed patches hold the same pixels in every element type", "[system]") {
  PackedMill mill;
  const Recipe patches{.resize = SmartResize{.factor = 14, .min_pixels = 196, .max_pixels = 4000},
                       .packing = Packing::kPacked,
                       .patches = Patches{.size = {7, 7}, .merge = 2, .temporal = 2}};
  const Batch expected = mill.make(raw(patches, DType::kUint8), Fidelity::kExact, mill.paths);

  for (const DType dtype : kDTypes) {
    const Batch batch = mill.make(raw(patches, dtype), Fidelity::kExact, mill.paths);

    CAPTURE(dtype_name(dtype));
    const auto shape = batch.tensor.shape();
    REQUIRE(std::vector(shape.begin(), shape.end()) ==
            std::vector(expected.tensor.shape().begin(), expected.tensor.shape().end()));
    REQUIRE(numbers_of(batch.tensor.data(), dtype) == numbers_of(expected.tensor.data(), DType::kUint8));
    for (std::uint32_t i = 0; i < kPackedImages; ++i)
      REQUIRE(numbers_of(batch.tensor.pixels(i), dtype) == numbers_of(expected.tensor.pixels(i), DType::kUint8));
  }
}

TEST_CASE("bad images of a packed float batch are left out, empty or another one's, and the rest is right",
          "[system]") {
  PackedMill mill;
  const std::string bad = mill.folder / "bad.jpg";
  write_file(bad, std::string("this is not a picture"));
  const Recipe recipe = raw(Recipe::thumbnail(37), DType::kFloat32);
  const Batch good = mill.make(recipe, Fidelity::kExact, mill.paths);
  const auto image = [&](std::size_t i) { return numbers_of(good.tensor.pixels(i), DType::kFloat32); };
  const std::vector<std::string> mixed{mill.paths[0], bad, mill.paths[1]};

  const Batch skipped = mill.make(recipe, Fidelity::kExact, mixed, OnError::kSkip);
  const Batch zeroed = mill.make(recipe, Fidelity::kExact, mixed, OnError::kZero);
  const Batch substituted = mill.make(recipe, Fidelity::kExact, mixed, OnError::kSubstitute);

  for (const Batch* batch : {&skipped, &zeroed, &substituted}) check_is_flat(batch->tensor);
  REQUIRE(skipped.tensor.samples() == 2);
  REQUIRE(holds(skipped.tensor, 1, image(1)));
  REQUIRE(zeroed.tensor.sample(1).zeroed);
  REQUIRE(zeroed.tensor.pixels(1).empty());
  REQUIRE(holds(zeroed.tensor, 2, image(1)));
  REQUIRE(holds(substituted.tensor, 1, image(0)));
  REQUIRE(holds(substituted.tensor, 2, image(1)));
}

TEST_CASE("a packed batch of nothing but zeroed images is an empty tensor of its type", "[system]") {
  PackedMill mill;
  const std::string bad = mill.folder / "bad.jpg";
  write_file(bad, std::string("this is not a picture"));

  const Batch batch =
      mill.make(raw(Recipe::thumbnail(37), DType::kFloat32), Fidelity::kExact, {bad, bad}, OnError::kZero);

  REQUIRE(batch.tensor.samples() == 2);
  REQUIRE(batch.tensor.data().empty());
  check_is_flat(batch.tensor);
  REQUIRE(need(batch.tensor.as<float>()).empty());
}

}  // namespace
}  // namespace millrace
