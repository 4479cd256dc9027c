// The daemon itself lacks descriptors while it reads.
#include <catch2/catch.hpp>

#include "proto/base/sanitized.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/descriptor_limit.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

BatchRequest request(const TempFolder& folder, Packing packing, OnError on_error) {
  Recipe recipe;
  recipe.resize = ExactSize{{16, 16}};
  recipe.packing = packing;
  BatchRequest wanted = request_of(folder.path(), 40, std::make_shared<Recipe>(recipe));
  wanted.on_error = on_error;
  return wanted;
}

bool has_waited(PipelineFixture& fixture) {
  return eventually([&] { return fixture.counters().stored(MetricId::fetch_waits) > 0; });
}

}  // namespace

TEST_CASE("samples wait while the daemon has no descriptor left, and none is bad", "[pipeline][integration]") {
  if (kSanitized) return skip_loudly("a daemon without descriptors: a sanitizer needs some of its own");
  TempFolder folder;
  write_images(folder.path(), 40);
  PipelineFixture fixture({.roots = {folder.path()}});
  const auto packing = GENERATE(Packing::kOneSize, Packing::kPacked);

  {
    const auto limit = DescriptorLimit::none();
    REQUIRE(fixture.submit(request(folder, packing, OnError::kSkip)).has_value());
    REQUIRE(has_waited(fixture));
    REQUIRE(fixture.sink().quiet());
  }
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE(batch.failures.empty());
  REQUIRE(batch.tensor->samples == 40);
  REQUIRE(fixture.counters().stored(MetricId::samples_bad) == 0);
}

TEST_CASE("a want that lasts fails the batch as unavailable whatever on_error says", "[pipeline][integration]") {
  if (kSanitized) return skip_loudly("a daemon without descriptors: a sanitizer needs some of its own");
  TempFolder folder;
  write_images(folder.path(), 40);
  PipelineFixture fixture({.roots = {folder.path()}, .host_patience = std::chrono::milliseconds(50)});
  const auto on_error = GENERATE(OnError::kFail, OnError::kSkip, OnError::kZero, OnError::kSubstitute);

  const auto limit = DescriptorLimit::none();
  REQUIRE(fixture.submit(request(folder, Packing::kOneSize, on_error)).has_value());
  const FailedBatch batch = fixture.sink().wait_failed();

  REQUIRE(batch.error.code == Code::kUnavailable);
  REQUIRE_THAT(batch.error.message, Catch::Contains("Too many open files") && Catch::Contains("no sample is bad"));
  REQUIRE(batch.failures.empty());
  REQUIRE(eventually([&] { return fixture.free_slots() == 3; }));
}

TEST_CASE("an epoch that met a want goes on from the position before it and misses nothing",
          "[pipeline][integration]") {
  if (kSanitized) return skip_loudly("a daemon without descriptors: a sanitizer needs some of its own");
  TempFolder folder;
  write_images(folder.path(), 12);
  PipelineFixture fixture({.roots = {folder.path()}, .slots = 1, .host_patience = std::chrono::milliseconds(50)});
  EpochRequest epoch = epoch_of(*fixture.list(folder.path()), 4);
  epoch.on_error = OnError::kSkip;
  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, epoch); });
  const CompletedBatch first = fixture.sink().wait_completed();
  {
    const auto limit = DescriptorLimit::none();
    REQUIRE(fixture.release(*first.tensor).has_value());
    REQUIRE(fixture.sink().wait_failed().error.code == Code::kUnavailable);
    fixture.on_control([&] { fixture.pipeline().stop_epoch(PipelineFixture::kSession, epoch.id); });
    REQUIRE(fixture.sink().wait_ended() == epoch.id);
  }

  epoch.first_batch = first.epoch->next_batch;
  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, epoch); });
  std::uint32_t rest = 0;
  for (std::uint64_t batch = 1; batch < 3; ++batch) {
    const CompletedBatch resumed = fixture.sink().wait_completed();
    REQUIRE(raw(resumed.id) == batch);
    rest += resumed.tensor->samples;
    REQUIRE(fixture.release(*resumed.tensor).has_value());
  }

  REQUIRE(rest == 8);
}

}  // namespace millrace
