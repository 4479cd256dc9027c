// Batches that come too late, or would: what is begun all the same, and what is not.
#include <catch2/catch.hpp>

#include "tests/integration/holding_backend.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

// Headers of pictures, which no backend of these tests decodes.
BatchRequest large_pngs(std::uint32_t count) {
  const std::vector<std::byte> png = make_png_header(8'000, 4'000);
  Recipe recipe;
  recipe.resize = ExactSize{{8, 8}};
  BatchRequest request{.id = BatchId{1}, .recipe = std::make_shared<const Recipe>(recipe)};
  for (std::uint32_t i = 0; i < count; ++i)
    request.samples.push_back(
        {.id = SampleId{i}, .source = InlineSource{{reinterpret_cast<const char*>(png.data()), png.size()}}});
  return request;
}

TEST_CASE("a batch that misses its deadline fails with what was done", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 8);
  PipelineFixture fixture({.roots = {folder.path()}, .fake = "delay_us=300000"});
  BatchRequest request = request_of(folder.path(), 8, square(16));
  request.backend = "fake";
  request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);

  REQUIRE(fixture.submit(std::move(request)).has_value());

  REQUIRE(fixture.sink().wait_failed().error.code == Code::kDeadline);
}

TEST_CASE("a batch whose deadline has passed before it could begin is shed, and those behind it go on",
          "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 4);
  PipelineFixture fixture({.roots = {folder.path()}});
  const auto submit = [&](std::uint64_t id, bool late) {
    BatchRequest request = request_of(folder.path(), 4, square(16));
    request.id = BatchId{id};
    if (late) request.deadline = std::chrono::steady_clock::now() - std::chrono::milliseconds(1);
    REQUIRE(fixture.submit(std::move(request)).has_value());
  };

  for (std::uint64_t id = 1; id <= 20; ++id) submit(id, true);
  submit(21, false);

  for (std::uint64_t id = 1; id <= 20; ++id) CHECK(fixture.sink().wait_failed().error.code == Code::kDeadline);
  CHECK(raw(fixture.sink().wait_completed().id) == 21);
  CHECK(fixture.counters().stored(MetricId::batches_shed) == 20);
  CHECK(fixture.counters().stored(MetricId::samples_completed) == 4);
}

TEST_CASE("a batch that no lane has begun is shed once its images would take longer than is left",
          "[pipeline][integration]") {
  constexpr std::uint32_t kImages = 40;
  auto held = std::make_unique<HoldingBackend>(1, 1);
  HoldingBackend& backend = *held;
  PipelineFixture fixture({.backend = std::move(held)});
  BatchRequest request = large_pngs(kImages);
  BatchRequest first = request;
  first.samples.resize(1);
  REQUIRE(fixture.submit(std::move(first)).has_value());
  REQUIRE(eventually([&] { return backend.jobs() == 1; }));

  request.id = BatchId{2};
  request.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  REQUIRE(fixture.submit(std::move(request)).has_value());
  fixture.wait_until_nothing_is_read();
  backend.finish_all();

  const FailedBatch failed = fixture.sink().wait_failed();
  CHECK(raw(failed.id) == 2);
  CHECK(failed.error.code == Code::kDeadline);
  CHECK_THAT(failed.error.message, Catch::Contains("cannot be met any more"));
  CHECK(fixture.counters().stored(MetricId::batches_shed) == 1);
  CHECK(backend.given().size() == 1);
}

TEST_CASE("after a batch was shed for what is expected of it the next is begun, so that more is learnt",
          "[pipeline][integration]") {
  constexpr std::uint32_t kImages = 40;
  auto held = std::make_unique<HoldingBackend>(8, 1);
  HoldingBackend& backend = *held;
  PipelineFixture fixture({.backend = std::move(held)});
  BatchRequest request = large_pngs(kImages);  // which this backend says take half a minute each
  const auto let_go_until = [&](auto over) {
    while (!over()) {
      backend.finish_all();
      fixture.on_control([] {});  // after what that posted
    }
  };
  REQUIRE(fixture.submit(request).has_value());
  let_go_until([&] { return backend.given().size() == kImages && backend.jobs() == 0; });
  REQUIRE(fixture.release(*fixture.sink().wait_completed().tensor).has_value());

  request.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  request.id = BatchId{2};
  REQUIRE(fixture.submit(request).has_value());
  CHECK_THAT(fixture.sink().wait_failed().error.message, Catch::Contains("cannot be met any more"));
  request.id = BatchId{3};
  REQUIRE(fixture.submit(request).has_value());
  fixture.wait_until_nothing_is_read();
  REQUIRE(eventually([&] { return backend.jobs() > 0; }));
  request.id = BatchId{4};  // beside one that is being made
  REQUIRE(fixture.submit(request).has_value());

  CHECK(raw(fixture.sink().wait_failed().id) == 4);
  let_go_until([&] { return backend.given().size() == 2 * kImages && backend.jobs() == 0; });
  CHECK(raw(fixture.sink().wait_completed().id) == 3);
}

}  // namespace
}  // namespace millrace
