#include <catch2/catch.hpp>

#include "daemon/pipeline/turns/ready_samples.h"

namespace millrace {
namespace {

// A JPEG sample whose cost is that of its bytes and its crop.
SampleTask sample(std::uint32_t index, std::size_t bytes, std::int32_t crop_side) {
  SampleTask task{.index = index,
                  .image = EncodedImage{EncodedBytes(bytes), SourceInfo{ImageFormat::kJpeg, Size{500, 500}, 1}}};
  task.geometry.crop = Box{0, 500 - crop_side, crop_side, crop_side};
  return task;
}

std::vector<std::uint32_t> indices(const std::vector<SampleTask>& tasks) {
  std::vector<std::uint32_t> found;
  for (const SampleTask& task : tasks) found.push_back(task.index);
  return found;
}

TEST_CASE("the costliest samples are taken first, whenever they came", "[pipeline]") {
  ReadySamples ready;
  ready.add(sample(0, 50'000, 100));
  ready.add(sample(1, 400'000, 500));
  ready.add(sample(2, 100'000, 100));

  REQUIRE(indices(ready.take(1)) == std::vector<std::uint32_t>{1});
  ready.add(sample(3, 200'000, 100));

  REQUIRE(ready.size() == 3);
  REQUIRE(indices(ready.take(2)) == std::vector<std::uint32_t>{3, 2});
  REQUIRE(indices(ready.take(9)) == std::vector<std::uint32_t>{0});
  REQUIRE(ready.empty());
  REQUIRE(ready.take(9).empty());
}

TEST_CASE("a file of many passes is expected to cost each of them, however few its bytes are", "[pipeline]") {
  SampleTask plain = sample(0, 400'000, 100), passes = sample(1, 20'000, 100);
  passes.image.passes = 490;

  CHECK(expected_cost(passes) > 10 * expected_cost(plain));
}

TEST_CASE("samples that cost many times as much as the others do not come together on one lane", "[pipeline]") {
  ReadySamples ready;
  constexpr std::uint32_t kCheap = 62;
  for (std::uint32_t i = 0; i < kCheap; ++i) ready.add(sample(i, 20'000, 100));
  ready.add(sample(kCheap, 8'000'000, 100));
  ready.add(sample(kCheap + 1, 8'000'001, 100));

  REQUIRE(indices(ready.take(10)) == std::vector<std::uint32_t>{kCheap + 1});
  REQUIRE(indices(ready.take(10)) == std::vector<std::uint32_t>{kCheap});
  REQUIRE(ready.take(10).size() == 10);
  REQUIRE(ready.take(99).size() == kCheap - 10);
}

TEST_CASE("what is taken does not count among what is left", "[pipeline]") {
  ReadySamples ready;
  ready.add(sample(0, 10'000'000, 100));
  ready.add(sample(1, 1'000, 100));
  REQUIRE(ready.take(1).size() == 1);
  REQUIRE(ready.take(1).size() == 1);
  for (std::uint32_t i = 0; i < 9; ++i) ready.add(sample(i, i == 0 ? 1'000'000 : 20'000, 100));

  REQUIRE(indices(ready.take(2)) == std::vector<std::uint32_t>{0});
}

constexpr QueueDepth lanes(std::uint32_t count) {
  return {.jobs = 2 * count, .at_once = count, .few = 4, .most = 16};
}

TEST_CASE("a job has fewer samples the less of the batch is left, and at least one", "[pipeline]") {
  REQUIRE(samples_a_job(1000, 1000, lanes(2)) == 16);
  REQUIRE(samples_a_job(64, 64, lanes(2)) == 10);
  REQUIRE(samples_a_job(32, 13, lanes(2)) == 2);
  REQUIRE(samples_a_job(8, 8, lanes(2)) == 1);
  REQUIRE(samples_a_job(1, 1, lanes(2)) == 1);
  REQUIRE(samples_a_job(64, 64, lanes(64)) == 1);
}

TEST_CASE("a large batch's last jobs still keep a lane busy for a while", "[pipeline]") {
  REQUIRE(samples_a_job(64, 1, lanes(2)) == 4);
  REQUIRE(samples_a_job(32, 1, lanes(2)) == 2);
  REQUIRE(samples_a_job(256, 1, lanes(8)) == 4);
}

TEST_CASE("a device that works on many samples at once gets as many as it asks for", "[pipeline]") {
  const QueueDepth device{.jobs = 3, .at_once = 1, .few = 32, .most = 64};

  REQUIRE(samples_a_job(1000, 1000, device) == 64);
  REQUIRE(samples_a_job(1000, 10, device) == 32);
  REQUIRE(samples_a_job(16, 16, device) == 5);
}

TEST_CASE("what lies below the crop of a JPEG costs nothing, of a PNG or WebP as much as the rest", "[place]") {
  const SampleGeometry top{.crop = {0, 0, 100, 100}, .resized = {}, .window = {}};
  const SampleGeometry bottom{.crop = {0, 400, 100, 100}, .resized = {}, .window = {}};
  const auto cost = [](ImageFormat format, const SampleGeometry& geometry) {
    return expected_cost(EncodedImage{EncodedBytes(100'000), SourceInfo{format, Size{500, 500}, 1}}, geometry);
  };

  REQUIRE(cost(ImageFormat::kJpeg, top) < cost(ImageFormat::kJpeg, bottom) / 2);
  REQUIRE(cost(ImageFormat::kWebp, top) == cost(ImageFormat::kWebp, bottom));
  REQUIRE(cost(ImageFormat::kPng, top) == cost(ImageFormat::kPng, bottom));
}

TEST_CASE("what a sample is expected to cost is its format's price of bytes and pixels", "[place]") {
  const SampleGeometry middle{.crop = {0, 100, 200, 150}, .resized = {}, .window = {}};  // ends at row 250 of 500
  const auto cost = [&](ImageFormat format) {
    return expected_cost(EncodedImage{EncodedBytes(100'000), SourceInfo{format, Size{400, 500}, 1}}, middle);
  };

  REQUIRE(cost(ImageFormat::kJpeg) == 50'000 + 50'000 * 3 + 200 * 150 * 3 / 2);
  REQUIRE(cost(ImageFormat::kPng) == 190'000 + 100'000 * 6 + 400 * 500 * 22 / 10);
  REQUIRE(cost(ImageFormat::kWebp) == 15'000 + 100'000 * 42 + 400 * 500 * 4);
}

TEST_CASE("what is kept of an image costs what it takes, with and without the image's bytes", "[place]") {
  const SampleGeometry whole{.crop = {0, 0, 500, 500}, .resized = {}, .window = {}};
  const auto cost = [&](std::size_t bytes, std::optional<CachedKind> kind) {
    EncodedImage image{EncodedBytes(bytes), SourceInfo{ImageFormat::kJpeg, Size{500, 500}, 1}};
    if (kind) image.kept = CachedForm{*kind, CachedBlock::copy_of(std::vector<std::byte>(150'000))};
    return expected_cost(image, whole);
  };

  REQUIRE(cost(0, CachedKind::kPacked) == 30'000 + 500 * 500 * 3 / 2);
  REQUIRE(cost(0, CachedKind::kTensor) == 2'000 + 15'000);
  for (const CachedKind kind : {CachedKind::kPacked, CachedKind::kTensor})
    REQUIRE(cost(100'000, kind) == cost(0, kind));
  REQUIRE(cost(0, CachedKind::kPacked) < cost(100'000, std::nullopt));
}

TEST_CASE("the largest picture that a header can claim has a cost, too", "[place]") {
  const std::int32_t side = 65'535;
  const SampleGeometry whole{.crop = {0, 0, side, side}, .resized = {}, .window = {}};
  const EncodedImage image{EncodedBytes(1), SourceInfo{ImageFormat::kWebp, Size{65'535, 65'535}, 1}};

  REQUIRE(expected_cost(image, whole) > 4ULL * 4'000'000'000);
}

TEST_CASE("steps of augmentation cost by the pixels of the output", "[place]") {
  const EncodedImage image{EncodedBytes(100), SourceInfo{ImageFormat::kPng, Size{1, 1}, 1}};
  SampleGeometry geometry{.crop = {0, 0, 1, 1}, .resized = {3'000, 3'000}, .window = {0, 0, 3'000, 3'000}};
  const std::uint64_t plain = expected_cost(image, geometry);
  geometry.step_pixel_ps = 64 * 40'000;

  REQUIRE(expected_cost(image, geometry) > 100 * plain);
  REQUIRE(expected_cost(image, geometry) > 20'000'000'000);
}

}  // namespace
}  // namespace millrace
