// Epochs: their order, how far they run ahead, and what ends them.
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/integration/holding_backend.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

TEST_CASE("an epoch pushes every sample once, in batches in order, and resumes where it was",
          "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 23);
  PipelineFixture fixture({.roots = {folder.path()}});
  const auto dataset = *fixture.list(folder.path());

  std::vector<std::uint64_t> ids;
  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, epoch_of(dataset, 4)); });
  for (std::uint64_t i = 0; i < 6; ++i) {
    const CompletedBatch batch = fixture.sink().wait_completed();
    REQUIRE(raw(batch.id) == i);
    REQUIRE(batch.epoch->next_batch == i + 1);
    for (std::uint32_t s = 0; s < batch.tensor->samples; ++s) ids.push_back(fixture.record(*batch.tensor, s).id);
    REQUIRE(fixture.release(*batch.tensor).has_value());
  }
  REQUIRE(fixture.sink().wait_ended() == EpochStreamId{3});

  EpochRequest rest = epoch_of(dataset, 4);
  rest.first_batch = 4;
  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, rest); });
  const CompletedBatch resumed = fixture.sink().wait_completed();
  REQUIRE(fixture.record(*resumed.tensor, 0).id == ids[16]);
  std::sort(ids.begin(), ids.end());
  for (std::uint64_t i = 0; i < 23; ++i) REQUIRE(ids[i] == i);
}

TEST_CASE("an epoch pushes no more batches than there are free slots", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 20);
  PipelineFixture fixture({.roots = {folder.path()}, .slots = 2});
  const auto dataset = *fixture.list(folder.path());

  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, epoch_of(dataset, 2)); });
  const CompletedBatch first = fixture.sink().wait_completed();
  fixture.sink().wait_completed();

  REQUIRE(fixture.free_slots() == 0);
  REQUIRE(fixture.sink().quiet());
  REQUIRE(fixture.release(*first.tensor).has_value());
  REQUIRE(raw(fixture.sink().wait_completed().id) == 2);
}

TEST_CASE("an epoch whose first batch takes long runs no further ahead than its slots, though the others fail",
          "[pipeline][integration]") {
  constexpr std::uint32_t kImages = 40, kSlots = 3;
  TempFolder folder;
  std::vector<std::uint32_t> bad(kImages - 1);
  std::iota(bad.begin(), bad.end(), 1);
  write_images(folder.path(), kImages, bad);
  auto held = std::make_unique<HoldingBackend>(1);
  HoldingBackend& backend = *held;
  PipelineFixture fixture({.roots = {folder.path()}, .slots = kSlots, .backend = std::move(held)});
  EpochRequest epoch = epoch_of(*fixture.list(folder.path()), 1);
  epoch.order.shuffle = Shuffle::kNo;
  epoch.on_error = OnError::kFail;

  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, epoch); });
  REQUIRE(eventually([&] { return backend.jobs() == 1; }));
  REQUIRE(eventually([&] { return fixture.counters().stored(MetricId::batches_failed) == kSlots - 1; }));
  fixture.wait_until_nothing_is_read();
  CHECK(fixture.counters().stored(MetricId::batches_failed) == kSlots - 1);
  backend.finish_all();

  CHECK(raw(fixture.sink().wait_completed().id) == 0);
  for (std::uint64_t i = 1; i < kImages; ++i) CHECK(raw(fixture.sink().wait_failed().id) == i);
  CHECK(fixture.sink().wait_ended() == epoch.id);
}

TEST_CASE("an epoch of tensors that a lowered limit does not allow any more breaks off and says so",
          "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 20);
  PipelineFixture fixture({.roots = {folder.path()}, .slots = 2});
  const EpochRequest epoch = epoch_of(*fixture.list(folder.path()), 2);
  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, epoch); });
  const CompletedBatch first = fixture.sink().wait_completed();
  fixture.sink().wait_completed();

  Limits lower;
  lower.sample.side = 10;
  fixture.limits().put(lower);
  REQUIRE(fixture.release(*first.tensor).has_value());

  CHECK_THAT(fixture.sink().wait_epoch_error().message, Catch::Contains("limits.side"));
  CHECK(fixture.sink().quiet());
}

}  // namespace
}  // namespace millrace
