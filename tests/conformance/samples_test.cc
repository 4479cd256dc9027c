// What a backend does about single samples: errors of one leave the others alone, limits hold, tasks come back.
#include <algorithm>

#include "tests/conformance/bench_of_backend.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

constexpr Size kOutput{16, 16};

// Adds an image and returns its place in the job.
std::size_t add(JobOnTheBench& bench, EncodedImage image) {
  const SampleGeometry geometry = resized_whole(image, kOutput);
  bench.add(std::move(image), geometry);
  return bench.tasks.size() - 1;
}

Code code_of(const Finished& finished, std::size_t index) {
  REQUIRE(finished.outcomes.at(index).error);
  REQUIRE_FALSE(finished.outcomes.at(index).error->message.empty());
  return finished.outcomes.at(index).error->code;
}

std::vector<std::byte> cut(std::vector<std::byte> bytes, std::size_t size) {
  bytes.resize(size);
  return bytes;
}

}  // namespace

TEST_CASE("a broken sample is an error of its own and leaves the others as they are", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    const std::unique_ptr<Backend> backend = start(row);
    const Pixels pixels = make_pixels(50, 40, 3, 1);
    const std::vector<std::byte> jpeg = make_jpeg({.pixels = pixels}), png = make_png({.pixels = pixels}),
                                 webp = make_webp({.pixels = pixels});
    Collector alone_done, done;
    JobOnTheBench alone;
    add(alone, encoded(jpeg, ImageFormat::kJpeg, {50, 40}));
    JobOnTheBench bench;
    std::vector<std::size_t> good, bad;
    for (int round = 0; round < 2; ++round) {
      good.push_back(add(bench, encoded(jpeg, ImageFormat::kJpeg, {50, 40})));
      for (const auto& [bytes, format] : {std::pair{&jpeg, ImageFormat::kJpeg}, std::pair{&png, ImageFormat::kPng},
                                          std::pair{&webp, ImageFormat::kWebp}}) {
        bad.push_back(add(bench, encoded(cut(*bytes, bytes->size() / 2), format, {50, 40})));
        bad.push_back(add(bench, encoded({}, format, {50, 40})));
        bad.push_back(add(bench, encoded(std::vector<std::byte>(4000, std::byte{0x5C}), format, {50, 40})));
        bad.push_back(add(bench, encoded(*bytes, format, {51, 40})));  // not the size that was announced
      }
    }
    good.push_back(add(bench, encoded(jpeg, ImageFormat::kJpeg, {50, 40})));
    REQUIRE(backend->try_submit(alone.job(alone_done)));
    alone_done.wait_for(1);

    REQUIRE(backend->try_submit(bench.job(done)));

    const Finished finished = done.wait_for_one();
    const Code verdict = row.leaves_verdicts ? Code::kUnsupported : Code::kInvalid;
    for (const std::size_t i : bad) REQUIRE(code_of(finished, i) == verdict);
    for (const std::size_t i : good) {
      REQUIRE_FALSE(finished.outcomes[i].error);
      REQUIRE(bench.tensors[i]->copy() == alone.tensors[0]->copy());
    }
    REQUIRE(
        std::all_of(bench.tensors.begin(), bench.tensors.end(), [](const auto& tensor) { return tensor->intact(); }));
  }
}

TEST_CASE("tasks come back with their bytes, and an outcome each", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    const std::unique_ptr<Backend> backend = start(row);
    JobOnTheBench bench = std::move(small_jobs(1, 5)[0]);
    for (std::size_t i = 0; i < bench.tasks.size(); ++i) bench.tasks[i].index = static_cast<std::uint32_t>(100 + 7 * i);
    const std::size_t bytes = bench.tasks[0].image.bytes.size();
    Collector collector;

    REQUIRE(backend->try_submit(bench.job(collector)));

    const Finished finished = collector.wait_for_one();
    REQUIRE(finished.tasks.size() == 5);
    REQUIRE(finished.outcomes.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
      REQUIRE(finished.tasks[i].index == 100 + 7 * i);
      REQUIRE(finished.outcomes[i].index == finished.tasks[i].index);
      REQUIRE(finished.tasks[i].image.bytes.size() == bytes);
    }
  }
}

TEST_CASE("an image over the limit on pixels is refused without being decoded", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    const std::unique_ptr<Backend> backend = start(row, {.limits = {.pixels = 1000}});
    JobOnTheBench bench;
    const std::size_t small = add(bench, jpeg_image(40, 25, 1)), large = add(bench, jpeg_image(40, 26, 1));
    Collector collector;

    REQUIRE(backend->try_submit(bench.job(collector)));

    const Finished finished = collector.wait_for_one();
    REQUIRE_FALSE(finished.outcomes[small].error);
    REQUIRE(code_of(finished, large) == Code::kInvalid);
  }
}

TEST_CASE("a sample over its time limit ends as kDeadline", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    const std::unique_ptr<Backend> backend = start(row, {.limits = {.time = std::chrono::milliseconds(0)}});
    JobOnTheBench bench;
    const std::size_t sample = add(bench, jpeg_image(200, 200, 1));
    Collector collector;

    REQUIRE(backend->try_submit(bench.job(collector)));

    REQUIRE(code_of(collector.wait_for_one(), sample) == Code::kDeadline);
  }
}

TEST_CASE("a place that no processor can write goes back as unsupported, for others to make", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    const std::unique_ptr<Backend> backend = start(row);
    JobOnTheBench bench;
    for (int i = 0; i < 2; ++i) add(bench, jpeg_image(40, 30, 1));
    bench.tasks[0].out.memory = MemoryId{4'000'000'000};
    bench.tasks[0].out.host = nullptr;
    Collector collector;

    REQUIRE(backend->try_submit(bench.job(collector)));

    const Finished finished = collector.wait_for_one();
    REQUIRE(code_of(finished, 0) == Code::kUnsupported);
    REQUIRE_FALSE(finished.outcomes[1].error);
    REQUIRE(bench.tensors[0]->untouched());
  }
}

TEST_CASE("a task that contradicts itself is an error, not an overflow", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    const std::unique_ptr<Backend> backend = start(row);
    JobOnTheBench bench;
    for (int i = 0; i < 4; ++i) add(bench, jpeg_image(40, 30, 1));
    bench.tasks[0].out.bytes -= 1_B;
    bench.tasks[1].geometry.crop.width = 41;
    bench.tasks[2].geometry.window.left = 1;
    Collector collector;

    REQUIRE(backend->try_submit(bench.job(collector)));

    const Finished finished = collector.wait_for_one();
    for (const std::size_t i : {0, 1, 2}) REQUIRE(code_of(finished, i) == Code::kInternal);
    REQUIRE_FALSE(finished.outcomes[3].error);
    for (const auto& tensor : bench.tensors) REQUIRE(tensor->intact());
  }
}

}  // namespace millrace
