// Tensors are the same with and without a seek index, whatever became of it, in both fidelities.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/formats/probe.h"
#include "daemon/plan/draw_geometry.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

constexpr Size kOutput{40, 40};

EncodedImage make_image_file(std::uint32_t seed, int factor, int orientation = 0, int restart_interval = 0) {
  const auto jpeg = make_jpeg({.pixels = make_pixels(310, 230, 3, seed),
                               .h_samp = factor,
                               .v_samp = factor,
                               .restart_interval = restart_interval,
                               .exif_orientation = orientation});
  EncodedBytes bytes(jpeg.size());
  std::memcpy(bytes.writable().data(), jpeg.data(), jpeg.size());
  const auto info = probe_image(bytes.view(), SampleLimits{}, UseOrientation::kYes);
  REQUIRE(info);
  return EncodedImage{std::move(bytes), *info};
}

Recipe train_recipe() {
  Recipe recipe;
  recipe.crop = RandomResizedCrop{};
  recipe.resize = ExactSize{kOutput};
  recipe.flip_probability = 0.5F;
  return recipe;
}

std::vector<std::byte> tensor_of(EncodedImage& image, std::uint64_t epoch, Fidelity fidelity,
                                 ImageWorkspace& workspace) {
  const Recipe recipe = train_recipe();
  const auto geometry = draw_geometry(recipe, {}, image.info, {1, epoch, SampleId{0}}, SampleLimits{}.side);
  REQUIRE(geometry);
  std::vector<std::byte> tensor(image_bytes(recipe, kOutput).count);
  SampleTask task{0, std::move(image), *geometry, in_host_memory(tensor)};
  const SampleOutcome outcome = make_image(task, recipe, SampleLimits{}, workspace, fidelity);
  image = std::move(task.image);
  REQUIRE_FALSE(outcome.error);
  return tensor;
}

bool has_our_decoder() {
  if (kernels::best_target() != kernels::Target::kScalar) return true;
  skip_loudly("instructions: this processor lacks avx2");
  return false;
}

struct IndexRig {
  Counters counters;
  ImageCache cache{{.memory = 16_MiB, .disk = Bytes{0}, .state_dir = ""}, counters};
  ImageWorkspace with{JpegPath::kFastest, {}, &cache}, without;

  std::int64_t count(MetricId id) const { return counters.stored(id); }
};

// The index of all of a picture.
std::vector<std::uint8_t> index_of(const EncodedImage& image, std::uint64_t owner) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(image.bytes.view().data());
  const auto header = kernels::jpeg::read_header({bytes, image.bytes.size()});
  REQUIRE(header);
  std::vector<std::uint8_t> pixels(310 * 230 * 3);
  kernels::jpeg::Decoder decoder;
  kernels::jpeg::Seeking seeking{.owner = owner};
  decoder.decode(*header, {0, 0, 310, 230}, {pixels.data(), 310, 230, 3, 930},
                 std::chrono::steady_clock::time_point::max(), &seeking);
  return seeking.made;
}

}  // namespace

TEST_CASE("tensors are the same with seek indexes, epoch by epoch", "[backend][seek]") {
  if (!has_our_decoder()) return;
  for (const Fidelity fidelity : {Fidelity::kExact, Fidelity::kFast}) {
    for (const int factor : {1, 2}) {
      for (const int orientation : {0, 6}) {
        IndexRig rig;
        EncodedImage image = make_image_file(5, factor, orientation);
        for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
          const auto expected = tensor_of(image, epoch, fidelity, rig.without);
          REQUIRE(tensor_of(image, epoch, fidelity, rig.with) == expected);
        }
        REQUIRE(rig.count(MetricId::index_hits) == 11);
        REQUIRE(rig.count(MetricId::index_misses) == 1);
        REQUIRE(rig.count(MetricId::index_entries) == 1);
      }
    }
  }
}

TEST_CASE("files with restart markers take no seek index, and count for none", "[backend][seek]") {
  if (!has_our_decoder()) return;
  for (const Fidelity fidelity : {Fidelity::kExact, Fidelity::kFast}) {
    IndexRig rig;
    EncodedImage image = make_image_file(5, 2, 0, 20), plain = make_image_file(5, 2);
    for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
      const auto expected = tensor_of(plain, epoch, fidelity, rig.without);
      REQUIRE(tensor_of(image, epoch, fidelity, rig.with) == expected);
    }
    for (const MetricId id : {MetricId::index_hits, MetricId::index_misses, MetricId::index_entries})
      REQUIRE(rig.count(id) == 0);
  }
}

TEST_CASE("the seek index of another picture is found wrong, forgotten and made anew", "[backend][seek]") {
  if (!has_our_decoder()) return;
  for (const Fidelity fidelity : {Fidelity::kExact, Fidelity::kFast}) {
    IndexRig rig;
    EncodedImage image = make_image_file(5, 2), other = make_image_file(6, 2);
    const CacheKey key = key_of(image, rig.cache.seed());
    const auto wrong = index_of(other, key.owner());
    rig.cache.store(key, CachedKind::kIndex, {.bytes = CachedBlock::copy_of(std::as_bytes(std::span(wrong)))});

    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const auto expected = tensor_of(image, epoch, fidelity, rig.without);
      REQUIRE(tensor_of(image, epoch, fidelity, rig.with) == expected);
    }

    REQUIRE(rig.count(MetricId::index_rejected) == 1);
    REQUIRE(rig.count(MetricId::index_hits) == 2);
  }
}

TEST_CASE("a file's identity is its key, where it has one", "[backend][seek]") {
  if (!has_our_decoder()) return;
  IndexRig rig;
  EncodedImage image = make_image_file(5, 2), same_bytes = make_image_file(5, 2);
  image.identity = FileIdentity{.device = 1, .inode = 2, .size = image.bytes.size(), .modified = 3, .changed = 4};

  tensor_of(image, 0, Fidelity::kExact, rig.with);
  tensor_of(image, 1, Fidelity::kExact, rig.with);
  tensor_of(same_bytes, 1, Fidelity::kExact, rig.with);

  REQUIRE(rig.cache.find(key_of(*image.identity, rig.cache.seed()), CachedKind::kIndex));
  REQUIRE(rig.count(MetricId::index_hits) == 1);
  REQUIRE(rig.count(MetricId::index_misses) == 2);
}

}  // namespace millrace
