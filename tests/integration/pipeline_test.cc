#include <catch2/catch.hpp>

#include "daemon/model/stopping.h"
#include "tests/integration/holding_backend.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

TEST_CASE("a batch of files comes out as one tensor with its records", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 20);
  PipelineFixture fixture({.roots = {folder.path()}});

  REQUIRE(fixture.submit(request_of(folder.path(), 20, square(32))).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE(batch.failures.empty());
  REQUIRE(batch.tensor->shape == std::vector<std::uint64_t>{20, 32, 32, 3});
  REQUIRE(fixture.record(*batch.tensor, 7).id == 7);
  REQUIRE(fixture.record(*batch.tensor, 7).label == 7);
  REQUIRE(fixture.record(*batch.tensor, 7).source_width == 47);
  REQUIRE(std::string(fixture.record(*batch.tensor, 7).backend) == "cpu");
  REQUIRE(fixture.release(*batch.tensor).has_value());
  REQUIRE(fixture.free_slots() == 3);
}

TEST_CASE("the same batch gives the same bytes on every backend, in any order", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 20);
  PipelineFixture fixture({.roots = {folder.path()}, .fake = "delay_us=200"});

  BatchRequest on_cpu = request_of(folder.path(), 20, square(32));
  BatchRequest on_fake = request_of(folder.path(), 20, square(32));
  on_fake.id = BatchId{2};
  on_fake.backend = "fake";
  REQUIRE(fixture.submit(std::move(on_cpu)).has_value());
  const CompletedBatch first = fixture.sink().wait_completed();
  REQUIRE(fixture.submit(std::move(on_fake)).has_value());
  const CompletedBatch second = fixture.sink().wait_completed();

  REQUIRE(fixture.bytes(*first.tensor) == fixture.bytes(*second.tensor));
}

TEST_CASE("a bad file costs its batch one sample under skip and the batch under fail", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 6, {2});
  PipelineFixture fixture({.roots = {folder.path()}});

  BatchRequest skip = request_of(folder.path(), 6, square(16));
  skip.on_error = OnError::kSkip;
  REQUIRE(fixture.submit(std::move(skip)).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();
  REQUIRE(batch.tensor->samples == 5);
  REQUIRE(batch.failures.size() == 1);
  REQUIRE(batch.failures[0].source == folder.path() + "/002.jpg");
  REQUIRE(batch.failures[0].path == folder.path() + "/002.jpg");

  REQUIRE(fixture.submit(request_of(folder.path(), 6, square(16))).has_value());
  REQUIRE_THAT(fixture.sink().wait_failed().error.message, Catch::Contains("002.jpg"));
  REQUIRE(fixture.release(*batch.tensor).has_value());
  REQUIRE(eventually([&] { return fixture.free_slots() == 3; }));
}

TEST_CASE("packed output gives each image its own size", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 5);
  PipelineFixture fixture({.roots = {folder.path()}});
  Recipe recipe;
  recipe.packing = Packing::kPacked;

  REQUIRE(fixture.submit(request_of(folder.path(), 5, std::make_shared<Recipe>(recipe))).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  for (std::uint32_t i = 0; i < 5; ++i) {
    const shm::SampleRecord record = fixture.record(*batch.tensor, i);
    REQUIRE(record.width == 40 + i);
    REQUIRE(record.height == 30 + i);
    REQUIRE(record.pixels_bytes == std::uint64_t{record.width} * record.height * 3);
    REQUIRE(record.pixels_offset % kPackedAlignment == 0);
  }
}

TEST_CASE("patches of images of many sizes follow each other without gaps", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 5);
  PipelineFixture fixture({.roots = {folder.path()}});
  const Recipe recipe{.resize = SmartResize{.factor = 10, .min_pixels = 1, .max_pixels = 1'700},
                      .packing = Packing::kPacked,
                      .patches = Patches{.size = {5, 5}, .merge = 2, .temporal = 2}};

  REQUIRE(fixture.submit(request_of(folder.path(), 5, std::make_shared<Recipe>(recipe))).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  std::uint64_t patches = 0;
  for (std::uint32_t i = 0; i < 5; ++i) {
    const shm::SampleRecord record = fixture.record(*batch.tensor, i);
    REQUIRE(record.width % 10 == 0);
    REQUIRE(record.pixels_offset == batch.tensor->offset + patches * 150);
    patches += record.width / 5 * (record.height / 5);
  }
  REQUIRE(batch.tensor->bytes == Bytes{patches * 150});
  REQUIRE(batch.tensor->shape == std::vector<std::uint64_t>{patches, 3, 2, 5, 5});
}

TEST_CASE("a sample that does not divide into patches is its own error, a recipe that never does the batch's",
          "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 3);
  PipelineFixture fixture({.roots = {folder.path()}});
  Recipe recipe{.packing = Packing::kPacked, .patches = Patches{.size = {41, 31}}};
  BatchRequest request = request_of(folder.path(), 3, std::make_shared<Recipe>(recipe));
  request.on_error = OnError::kSkip;
  recipe.resize = ExactSize{{40, 31}};

  REQUIRE(fixture.submit(std::move(request)).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();
  const Result<void> refused = fixture.submit(request_of(folder.path(), 3, std::make_shared<Recipe>(recipe)));

  REQUIRE(batch.failures.size() == 2);
  REQUIRE_THAT(batch.failures[0].error.message, Catch::Contains("groups of 41x31"));
  REQUIRE(batch.tensor->shape == std::vector<std::uint64_t>{1, 3, 1, 31, 41});
  REQUIRE_THAT(refused.error().message, Catch::StartsWith("recipe.patches.width"));
}

TEST_CASE("a packed batch that does not fit its slot says how large the slot must be", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 5);
  PipelineFixture fixture({.roots = {folder.path()}, .slot_bytes = 8_KiB});
  Recipe recipe;
  recipe.packing = Packing::kPacked;

  REQUIRE(fixture.submit(request_of(folder.path(), 5, std::make_shared<Recipe>(recipe))).has_value());
  const FailedBatch batch = fixture.sink().wait_failed();

  REQUIRE(batch.error.code == Code::kExhausted);
  REQUIRE_THAT(batch.error.message, Catch::Contains("slot_bytes of at least"));
  REQUIRE(eventually([&] { return fixture.free_slots() == 3; }));
}

TEST_CASE("batches wait for a slot, and too many of them are refused", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 2);
  PipelineSetup setup{.roots = {folder.path()}, .slots = 1};
  setup.limits.session.queued_batches = 2;
  PipelineFixture fixture(std::move(setup));

  std::vector<Result<void>> answers;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    BatchRequest request = request_of(folder.path(), 2, square(16));
    request.id = BatchId{id};
    answers.push_back(fixture.submit(std::move(request)));
  }

  REQUIRE(answers[2].has_value());
  REQUIRE(answers[3].error().code == Code::kExhausted);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    const CompletedBatch batch = fixture.sink().wait_completed();
    REQUIRE(raw(batch.id) == id);
    REQUIRE(fixture.release(*batch.tensor).has_value());
  }
}

TEST_CASE("a stale handle is refused and frees nothing", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 2);
  PipelineFixture fixture({.roots = {folder.path()}});
  REQUIRE(fixture.submit(request_of(folder.path(), 2, square(16))).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE(fixture.release(*batch.tensor).has_value());

  REQUIRE(fixture.release(*batch.tensor).error().code == Code::kPrecondition);
  REQUIRE(fixture.free_slots() == 3);
}

TEST_CASE("a cancelled batch fails at once and its slot comes back when the device lets go",
          "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 8);
  PipelineFixture fixture({.roots = {folder.path()}, .fake = "delay_us=100000"});
  BatchRequest request = request_of(folder.path(), 8, square(16));
  request.backend = "fake";

  REQUIRE(fixture.submit(std::move(request)).has_value());
  fixture.on_control([&] { fixture.pipeline().cancel(PipelineFixture::kSession, BatchId{1}); });

  REQUIRE(fixture.sink().wait_failed().error.code == Code::kCancelled);
  REQUIRE(eventually([&] { return fixture.free_slots() == 3; }));
}

TEST_CASE("samples of a device that is lost are made by another backend", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 12);
  PipelineFixture fixture({.roots = {folder.path()}, .fake = "lose_after=3"});
  BatchRequest pinned = request_of(folder.path(), 12, square(16));
  pinned.backend = "fake";
  pinned.on_error = OnError::kSkip;

  REQUIRE(fixture.submit(std::move(pinned)).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE(batch.failures.size() > 0);
  for (const SampleFailure& failure : batch.failures) REQUIRE(failure.error.code == Code::kUnavailable);
  BatchRequest unpinned = request_of(folder.path(), 12, square(16));
  unpinned.id = BatchId{2};
  REQUIRE(fixture.submit(std::move(unpinned)).has_value());
  REQUIRE(fixture.sink().wait_completed().tensor->samples == 12);
}

TEST_CASE("what waits for a device that is lost does not wait for the jobs that are still in it",
          "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 1);
  auto held = std::make_unique<HoldingBackend>(1);
  HoldingBackend& device = *held;
  PipelineFixture fixture({.roots = {folder.path()}, .backend = std::move(held)});
  BatchRequest behind = request_of(folder.path(), 1, square(16));
  behind.id = BatchId{2};
  REQUIRE(fixture.submit(request_of(folder.path(), 1, square(16))).has_value());
  REQUIRE(eventually([&] { return device.jobs() == 1; }));
  REQUIRE(fixture.submit(std::move(behind)).has_value());
  fixture.wait_until_nothing_is_read();

  device.lose("unplugged");

  const FailedBatch failed = fixture.sink().wait_failed();
  REQUIRE(failed.id == BatchId{2});
  REQUIRE(failed.error.code == Code::kUnavailable);
  REQUIRE_THAT(failed.error.message, Catch::Contains("unplugged"));
  REQUIRE(device.jobs() == 1);
  device.finish_all();
  REQUIRE(fixture.sink().wait_completed().id == BatchId{1});
}

TEST_CASE("an epoch that is pinned to a device goes on without it, each sample an error", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 6);
  auto held = std::make_unique<HoldingBackend>(4);
  HoldingBackend& device = *held;
  PipelineFixture fixture({.roots = {folder.path()}, .backend = std::move(held)});
  EpochRequest epoch = epoch_of(*fixture.list(folder.path()), 1);
  epoch.backend = device.info().name;
  epoch.on_error = OnError::kZero;
  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, epoch); });
  REQUIRE(eventually([&] { return device.jobs() > 0; }));

  device.lose("unplugged");
  device.finish_all();

  for (int i = 0; i < 6; ++i) {
    const CompletedBatch batch = fixture.sink().wait_completed();
    if (i == 5) CHECK_THAT(batch.failures.at(0).error.message, Catch::Contains("lost"));
    if (batch.tensor) REQUIRE(fixture.release(*batch.tensor).has_value());
  }
}

TEST_CASE("a device that is back gets samples again", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 4);
  PipelineFixture fixture({.roots = {folder.path()}, .fake = "lose_after=3,back_after=1"});
  const auto on_the_device = [&](std::uint64_t id, std::uint32_t samples) {
    BatchRequest request = request_of(folder.path(), samples, square(16));
    request.id = BatchId{id};
    request.backend = "fake";
    request.on_error = OnError::kSkip;
    return fixture.submit(std::move(request));
  };

  REQUIRE(on_the_device(1, 4).has_value());
  const CompletedBatch lossy = fixture.sink().wait_completed();
  // Until somebody asks the device again, it is lost; who asks at the wrong moment is refused, and that counts, too.
  REQUIRE(eventually([&] { return !fixture.on_control([&] { return fixture.pipeline().backend_lost(1); }); }));
  CHECK(fixture.counters().stored(MetricId::devices_lost) == 0);
  REQUIRE(on_the_device(2, 3).has_value());

  REQUIRE(lossy.failures.size() > 0);
  REQUIRE(fixture.sink().wait_completed().failures.empty());
}

TEST_CASE("a session closed under way lets go of its memory when the last lane is done", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 20);
  PipelineFixture fixture({.roots = {folder.path()}, .fake = "delay_us=20000"});
  BatchRequest slow = request_of(folder.path(), 20, square(32));
  slow.backend = "fake";
  REQUIRE(fixture.submit(std::move(slow)).has_value());

  fixture.close();
  fixture.drop_segment();

  REQUIRE(eventually([&] { return fixture.budget().used() == Bytes{0}; }));
  REQUIRE(fixture.sink().quiet());
}

TEST_CASE("draining finishes what has begun and refuses what is new", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 8);
  PipelineFixture fixture({.roots = {folder.path()}});
  REQUIRE(fixture.submit(request_of(folder.path(), 8, square(16))).has_value());

  std::promise<void> idle;
  fixture.on_control([&] { fixture.pipeline().drain(stopping(), [&] { idle.set_value(); }); });
  BatchRequest late = request_of(folder.path(), 8, square(16));
  late.id = BatchId{9};
  const Result<void> answer = fixture.submit(std::move(late));

  REQUIRE(answer.error().code == Code::kUnavailable);
  REQUIRE(idle.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready);
  REQUIRE(fixture.sink().wait_completed().tensor->samples == 8);
}

}  // namespace

}  // namespace millrace
