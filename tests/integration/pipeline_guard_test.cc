// Epochs whose client has chosen no on_error: what they make up for, and what ends them.
#include <filesystem>

#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {

namespace {

EpochRequest guarded(std::shared_ptr<const Dataset> dataset, std::uint32_t batch_size, OnError on_error) {
  EpochRequest request = epoch_of(std::move(dataset), batch_size);
  request.order.shuffle = Shuffle::kNo;
  request.on_error = on_error;
  request.guard = Guard::kOn;
  return request;
}

// Looks for a root are taken when somebody wants it, a second apart.
bool looked_and_missing(PipelineFixture& fixture, const std::string& root) {
  return !fixture.list(root).has_value();
}

void start(PipelineFixture& fixture, const EpochRequest& epoch) {
  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, epoch); });
}

}  // namespace

TEST_CASE("a guarded epoch goes on after a batch without a good sample, which failed", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 9, {1, 3, 4, 5});
  PipelineFixture fixture({.roots = {folder.path()}});
  const auto on_error = GENERATE(OnError::kSkip, OnError::kSubstitute);

  start(fixture, guarded(*fixture.list(folder.path()), 3, on_error));
  const CompletedBatch first = fixture.sink().wait_completed();
  const FailedBatch failed = fixture.sink().wait_failed();
  const CompletedBatch last = fixture.sink().wait_completed();

  REQUIRE(first.tensor->samples == (on_error == OnError::kSkip ? 2 : 3));
  REQUIRE(failed.id == BatchId{1});
  REQUIRE(failed.failures.size() == 3);
  REQUIRE_THAT(failed.error.message,
               Catch::StartsWith("3 of the batch's 3 samples are bad, for example " + folder.path() + "/003.jpg: "));
  REQUIRE(last.tensor->samples == 3);
  REQUIRE(fixture.sink().wait_ended() == EpochStreamId{3});
}

TEST_CASE("a packed batch without a good sample says so under substitute, chosen or not", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 3, {0, 1, 2});
  PipelineFixture fixture({.roots = {folder.path()}});
  Recipe packed;
  packed.packing = Packing::kPacked;
  EpochRequest epoch = guarded(*fixture.list(folder.path()), 3, OnError::kSubstitute);
  epoch.recipe = std::make_shared<Recipe>(packed);
  epoch.guard = GENERATE(Guard::kOff, Guard::kOn);

  start(fixture, epoch);
  const std::string message = fixture.sink().wait_failed().error.message;

  REQUIRE_THAT(message, !Catch::Contains("is fail"));
  REQUIRE_THAT(message, Catch::Contains(epoch.guard == Guard::kOn ? "3 of the batch's 3" : "none can stand in"));
}

TEST_CASE("a guarded epoch whose root is gone breaks off as unavailable and names the root",
          "[pipeline][integration]") {
  TempFolder folder;
  std::filesystem::create_directory(folder / "root");
  write_images(folder / "root", 12);
  const std::string root = folder / "root";
  PipelineFixture fixture({.roots = {root}, .slots = 1});
  const EpochRequest epoch = guarded(*fixture.list(root), 4, OnError::kSkip);

  start(fixture, epoch);
  const CompletedBatch first = fixture.sink().wait_completed();
  std::filesystem::rename(root, folder / "away");
  REQUIRE(eventually([&] { return looked_and_missing(fixture, root); }));
  REQUIRE(fixture.release(*first.tensor).has_value());
  const FailedBatch failed = fixture.sink().wait_failed();
  const Error ended = fixture.sink().wait_epoch_error();

  REQUIRE(failed.error.code == Code::kUnavailable);
  REQUIRE_THAT(failed.error.message, Catch::Contains("the root " + root + " is not there"));
  REQUIRE(failed.failures.empty());
  REQUIRE(ended.code == Code::kUnavailable);
  REQUIRE(ended.message == failed.error.message);
}

TEST_CASE("an epoch that chose to skip takes the samples of a root that is gone for bad ones",
          "[pipeline][integration]") {
  TempFolder folder;
  std::filesystem::create_directory(folder / "root");
  write_images(folder / "root", 8);
  const std::string root = folder / "root";
  PipelineFixture fixture({.roots = {root}, .slots = 1});
  EpochRequest epoch = guarded(*fixture.list(root), 4, OnError::kSkip);
  epoch.guard = Guard::kOff;

  start(fixture, epoch);
  const CompletedBatch first = fixture.sink().wait_completed();
  std::filesystem::rename(root, folder / "away");
  REQUIRE(eventually([&] { return looked_and_missing(fixture, root); }));
  REQUIRE(fixture.release(*first.tensor).has_value());
  const CompletedBatch second = fixture.sink().wait_completed();

  REQUIRE_FALSE(second.tensor);
  REQUIRE(second.failures.size() == 4);
  REQUIRE(fixture.sink().wait_ended() == epoch.id);
}

}  // namespace millrace
