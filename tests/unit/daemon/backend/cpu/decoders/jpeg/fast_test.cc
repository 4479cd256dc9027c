// Fidelity `fast` beside `exact`: within the bound that daemon/backend/cpu/README.md states, the same verdicts, and
// every kind of tensor from the same pixels.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/formats/probe.h"
#include "daemon/plan/draw_geometry.h"
#include "kernels/cpu/store.h"
#include "kernels/tensor/reference.h"
#include "proto/base/sanitized.h"
#include "tests/support/pictures/level_difference.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

// In levels of 255. README.md states them for photographs; pictures of hard, saturated edges differ more where exact
// decoding clamps what a JPEG has beyond black and white.
constexpr double kMostMean = 1.25;
constexpr double kMostMeanScaled = 3.0;  // shrunk four times or more
constexpr int kMostAnywhere = 64;

SampleLimits patient() {
  SampleLimits limits;
  limits.time = std::chrono::minutes(10);  // other processes may hold this one up
  return limits;
}

struct FastFile {
  std::string name;
  EncodedImage image;
};

std::optional<FastFile> file_of(const std::string& name, const std::vector<std::byte>& data) {
  EncodedBytes bytes(data.size());
  if (!data.empty()) std::memcpy(bytes.writable().data(), data.data(), data.size());
  const Result<SourceInfo> info = probe_image(bytes.view(), SampleLimits{}, UseOrientation::kYes);
  if (!info) return std::nullopt;
  return FastFile{name, EncodedImage{std::move(bytes), *info}};
}

std::vector<FastFile> files_of(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<FastFile> files;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    if (auto file = file_of(path.filename().string(), {bytes, bytes + text.size()})) files.push_back(std::move(*file));
  }
  return files;
}

Recipe training(std::uint32_t side) {
  Recipe recipe;
  recipe.crop = RandomResizedCrop{};
  recipe.resize = ExactSize{{side, side}};
  recipe.flip_probability = 0.5F;
  return recipe;
}

Recipe inference() {
  Recipe recipe;
  recipe.resize = ShorterSide{256};
  recipe.centre_crop = Size{224, 224};
  return recipe;
}

struct Made {
  std::vector<std::byte> tensor;
  std::optional<Error> error;
};

Made make(FastFile& file, const Recipe& recipe, const SampleGeometry& geometry, ImageWorkspace& workspace,
          Fidelity fidelity) {
  Made made{std::vector<std::byte>(image_bytes(recipe, geometry.output()).count), std::nullopt};
  SampleTask task{0, std::move(file.image), geometry, in_host_memory(made.tensor)};
  made.error = make_image(task, recipe, patient(), workspace, fidelity).error;
  file.image = std::move(task.image);
  return made;
}

SampleGeometry geometry_of(const FastFile& file, const Recipe& recipe, std::uint64_t epoch) {
  const auto geometry =
      draw_geometry(recipe, {}, file.image.info, RandomKey{7, epoch, SampleId{epoch}}, SampleLimits{}.side);
  if (!geometry) FAIL(geometry.error().message);
  return *geometry;
}

// Both fidelities of one sample, which have one verdict.
std::optional<LevelDifference> compare(FastFile& file, const Recipe& recipe, std::uint64_t epoch) {
  static ImageWorkspace exact, fast;
  const SampleGeometry geometry = geometry_of(file, recipe, epoch);
  const Made expected = make(file, recipe, geometry, exact, Fidelity::kExact);
  const Made made = make(file, recipe, geometry, fast, Fidelity::kFast);
  INFO(file.name);
  REQUIRE(made.error.has_value() == expected.error.has_value());
  if (expected.error) {
    REQUIRE(made.error->code == expected.error->code);
    REQUIRE(made.error->message == expected.error->message);
    return std::nullopt;
  }
  return level_difference(made.tensor, expected.tensor);
}

// Sanitizers look for other faults than bounds, and have enough with each eighth photograph.
constexpr std::size_t kEach = kSanitized ? 8 : 1;

void check_bound(const std::string& folder, const Recipe& recipe, std::uint64_t epochs, double most_mean = kMostMean) {
  LevelDifference worst;
  std::vector<FastFile> files = files_of(folder);
  for (std::size_t i = 0; i < files.size(); i += kEach) {
    FastFile& file = files[i];
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      const auto found = compare(file, recipe, epoch);
      REQUIRE(found);
      INFO(file.name << " epoch " << epoch << ": mean " << found->mean << ", most " << found->most);
      CHECK(found->mean <= most_mean);
      CHECK(found->most <= kMostAnywhere);
      worst = {std::max(worst.mean, found->mean), std::max(worst.most, found->most)};
    }
  }
  INFO("worst mean " << worst.mean << ", most " << worst.most);
  CHECK(worst.mean > 0);  // it is another path
}

// The whole image's.
Pixels pixels_of(FastFile& file) {
  static ImageWorkspace workspace;
  Recipe recipe;
  recipe.layout = Layout::kNhwc;
  const SampleGeometry geometry = geometry_of(file, recipe, 0);
  const Made made = make(file, recipe, geometry, workspace, Fidelity::kExact);
  REQUIRE_FALSE(made.error);
  Pixels pixels{geometry.output().width, geometry.output().height, 3, {}};
  pixels.data.resize(made.tensor.size());
  std::memcpy(pixels.data.data(), made.tensor.data(), made.tensor.size());
  return pixels;
}

// Nothing near black and white: nothing that decoding clamps.
Pixels pale_pixels(std::uint32_t width, std::uint32_t height, std::uint32_t channels, std::uint32_t seed) {
  Pixels pixels = make_pixels(width, height, channels, seed);
  for (std::uint8_t& sample : pixels.data) sample = static_cast<std::uint8_t>(80 + sample / 3);
  return pixels;
}

}  // namespace

TEST_CASE("fast stays within its bound on photographs", "[fast]") {
  const auto photos = test_data("photos");
  if (!photos) return;
  check_bound(*photos, training(224), 3);
  check_bound(*photos, inference(), 1);
  check_bound(*photos, training(64), 1, kMostMeanScaled);
  check_bound(*photos, training(24), 1, kMostMeanScaled);
  check_bound(*photos, training(384), 1);
}

TEST_CASE("fast stays within its bound on photographs with every filter, however much they shrink", "[fast]") {
  const auto photos = test_data("photos");
  if (!photos) return;
  std::vector<FastFile> files = files_of(*photos);
  std::mt19937 random(3);
  for (const Filter filter : {Filter::kBox, Filter::kBilinear, Filter::kHamming, Filter::kBicubic, Filter::kLanczos}) {
    double worst = 0;
    for (std::size_t i = 0; i < 2 * files.size(); i += kEach) {
      FastFile& file = files[i % files.size()];
      const double octaves = 4 + static_cast<double>(random() % 256) / 64;
      const auto side = static_cast<std::uint32_t>(std::lround(std::exp2(octaves)));
      Recipe recipe = training(side);
      recipe.filter = filter;
      const Box crop = geometry_of(file, recipe, i).crop;
      const bool shrinks_much = std::min(crop.width, crop.height) >= 4 * static_cast<int>(side);
      const auto found = compare(file, recipe, i);
      REQUIRE(found);
      INFO(file.name << ", filter " << static_cast<int>(filter) << ", " << crop.width << "x" << crop.height << " to "
                     << side << ": mean " << found->mean << ", most " << found->most);
      CHECK(found->mean <= (shrinks_much ? kMostMeanScaled : kMostMean));
      CHECK(found->most <= kMostAnywhere);
      worst = std::max(worst, found->mean);
    }
    CHECK(worst > 0);  // it is another path
  }
}

// Then all outputs meet the samples of reduced blocks in the same place, so that errors add up.
TEST_CASE("fast stays within its bound where a crop is a whole multiple of its output", "[fast]") {
  const auto photos = test_data("photos");
  if (!photos) return;
  std::vector<FastFile> files = files_of(*photos);
  for (std::size_t i = 0; i < files.size(); i += kEach) {
    FastFile& file = files[i];
    const std::uint32_t shorter = std::min(file.image.info.stored.width, file.image.info.stored.height);
    for (const std::uint32_t times : {4U, 8U, 16U}) {
      for (const Filter filter :
           {Filter::kBox, Filter::kBilinear, Filter::kHamming, Filter::kBicubic, Filter::kLanczos}) {
        const std::uint32_t side = shorter / times;
        if (side < 16) continue;
        const auto crop = static_cast<std::int32_t>(side * times);
        Recipe recipe = training(side);
        recipe.crop = BoxCrop{{0, 0, crop, crop}};
        recipe.filter = filter;
        const auto found = compare(file, recipe, i);
        REQUIRE(found);
        INFO(file.name << ", filter " << static_cast<int>(filter) << ", " << times << " times to " << side << ": mean "
                       << found->mean << ", most " << found->most);
        CHECK(found->mean <= kMostMeanScaled);
        CHECK(found->most <= kMostAnywhere);
      }
    }
  }
}

TEST_CASE("fast has exact's verdict on damaged and unusual files, and near its pixels", "[fast]") {
  for (const char* const folder : {"bad-jpeg", "jpeg-variants"}) {
    const auto data = test_data(folder);
    if (!data) continue;
    for (FastFile& file : files_of(*data)) {
      const auto found = compare(file, training(40), 0);
      INFO(file.name);
      if (found) CHECK(found->mean <= 4 * kMostMean);
    }
  }
}

TEST_CASE("fast stays within its bound on progressive photographs that shrink much", "[fast]") {
  const auto photos = test_data("photos");
  if (!photos) return;
  constexpr std::pair<int, int> kSamplings[] = {{1, 1}, {2, 1}, {2, 2}};
  std::vector<FastFile> files = files_of(*photos);
  double most_mean = 0;
  for (std::size_t i = 0; i < files.size(); i += 4) {
    const auto [h, v] = kSamplings[i / 4 % 3];
    std::optional<FastFile> file =
        file_of(files[i % files.size()].name,
                make_jpeg({.pixels = pixels_of(files[i]), .h_samp = h, .v_samp = v, .progressive = true}));
    REQUIRE(file);
    for (const std::uint32_t side : {64U, 40U, 16U}) {
      Recipe recipe = training(side);
      recipe.crop = WholeImage{};
      const auto found = compare(*file, recipe, i);
      REQUIRE(found);
      INFO(file->name << " to " << side << ": mean " << found->mean << ", most " << found->most);
      CHECK(found->mean <= kMostMeanScaled);
      CHECK(found->most <= kMostAnywhere);
      most_mean = std::max(most_mean, found->mean);
    }
  }
  CHECK(most_mean > 0.5);  // it is another path
}

TEST_CASE("fast makes any sampling, size, orientation and format", "[fast]") {
  std::mt19937 random(1);
  constexpr std::pair<int, int> kSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}};
  constexpr Filter kFilters[] = {Filter::kNearest, Filter::kBox,     Filter::kBilinear,
                                 Filter::kHamming, Filter::kBicubic, Filter::kLanczos};
  for (int i = 0; i < 400; ++i) {
    const std::uint32_t largest = i % 20 == 0 ? 700 : 90;
    const std::uint32_t width = 1 + static_cast<std::uint32_t>(random()) % largest;
    const std::uint32_t height = i % 7 == 0 ? 1 : 1 + static_cast<std::uint32_t>(random()) % largest;
    const std::uint32_t channels = random() % 4 == 0 ? 1 : 3;
    const Pixels pixels = pale_pixels(width, height, channels, static_cast<std::uint32_t>(random()));
    const int orientation = static_cast<int>(random() % 9);
    const auto [h, v] = kSamplings[random() % std::size(kSamplings)];
    std::vector<std::byte> data;
    switch (random() % 5) {
      case 0:
        data = make_png({.pixels = pixels, .exif_orientation = orientation});
        break;
      case 1:
        data = make_jpeg({.pixels = pixels, .h_samp = h, .v_samp = v, .progressive = true});
        break;
      default:
        data = make_jpeg({.pixels = pixels, .h_samp = h, .v_samp = v, .exif_orientation = orientation / 2});
    }
    std::optional<FastFile> file = file_of("made", data);
    REQUIRE(file);
    Recipe recipe = i % 3 == 0 && width < 4 * height && height < 4 * width
                        ? inference()
                        : training(1 + static_cast<std::uint32_t>(random()) % (i % 20 == 0 ? 30 : 100));
    if (random() % 4 == 0) recipe.crop = BoxCrop{{0, static_cast<int>(random() % height), static_cast<int>(width), 1}};
    if (orientation >= 5 && std::holds_alternative<BoxCrop>(recipe.crop)) recipe.crop = WholeImage{};
    recipe.filter = kFilters[random() % std::size(kFilters)];

    const auto found = compare(*file, recipe, static_cast<std::uint64_t>(i));

    INFO(i << ": " << width << "x" << height << "x" << channels << " sampled " << h << "x" << v << ", orientation "
           << orientation << ": mean " << found->mean << ", most " << found->most);
    REQUIRE(found);
    CHECK(found->mean <= kMostMean);
    CHECK(found->most <= 5);
  }
}

TEST_CASE("every kind of tensor that fast makes holds the same pixels", "[fast]") {
  std::mt19937 random(2);
  ImageWorkspace workspace;
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t channels = random() % 4 == 0 ? 1 : 3;
    const Pixels pixels = make_pixels(30 + static_cast<std::uint32_t>(random()) % 200, 40, channels, 3);
    std::optional<FastFile> file =
        file_of("made", random() % 3 == 0 ? make_png({.pixels = pixels}) : make_jpeg({.pixels = pixels}));
    REQUIRE(file);
    Recipe recipe = training(24);
    recipe.layout = Layout::kNhwc;
    const SampleGeometry geometry = geometry_of(*file, recipe, static_cast<std::uint64_t>(i));
    const Made picture = make(*file, recipe, geometry, workspace, Fidelity::kFast);
    recipe.dtype = static_cast<DType>(random() % 4);
    recipe.layout = static_cast<Layout>(random() % 2);
    recipe.channels = static_cast<Channels>(random() % 3);
    recipe.range = static_cast<ValueRange>(random() % 2);
    if (random() % 2 == 0) recipe.normalise = Normalise{{0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F}};
    if (random() % 3 == 0) recipe.patches = Patches{{4, 6}, 2, 2};

    const Made made = make(*file, recipe, geometry, workspace, Fidelity::kFast);

    kernels::StoreSpec spec{.dtype = static_cast<kernels::DType>(recipe.dtype),
                            .layout = static_cast<kernels::Layout>(recipe.layout),
                            .channels = static_cast<kernels::ChannelOrder>(recipe.channels),
                            .range = static_cast<kernels::ValueRange>(recipe.range)};
    if (recipe.normalise) spec.normalise = kernels::Normalise{recipe.normalise->mean, recipe.normalise->std};
    if (recipe.patches) spec.patches = kernels::Patches{4, 6, 2, 2};
    std::vector<std::byte> expected(made.tensor.size());
    const kernels::U8View view{reinterpret_cast<const std::uint8_t*>(picture.tensor.data()), 24, 24, 3, 72};
    kernels::reference::store(spec, view, kernels::Flip::kNone, expected);
    REQUIRE_FALSE(made.error);
    REQUIRE(made.tensor == expected);
  }
}

}  // namespace millrace
