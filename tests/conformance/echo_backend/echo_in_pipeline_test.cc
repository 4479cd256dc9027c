// The echo backend in a whole pipeline: its devices have names of their own, and what it cannot make it says.
#include <catch2/catch.hpp>

#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {

TEST_CASE("each device of a type makes what is pinned to it", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 4);
  PipelineFixture fixture({.roots = {folder.path()}});

  for (const std::string device : {"echo:0", "echo:1"}) {
    BatchRequest request = request_of(folder.path(), 4, square(16));
    request.backend = device;
    REQUIRE(fixture.submit(std::move(request)).has_value());
    const CompletedBatch batch = fixture.sink().wait_completed();

    REQUIRE(batch.failures.empty());
    REQUIRE(std::string(fixture.record(*batch.tensor, 0).backend) == device);
    REQUIRE(fixture.release(*batch.tensor).has_value());
  }
}

TEST_CASE("why a pinned backend does not make a sample is the sample's error", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 1);
  PipelineFixture fixture({.roots = {folder.path()}});
  BatchRequest request = request_of(folder.path(), 1, square(16));
  Recipe recipe = *request.recipe;
  recipe.patches = Patches{{8, 8}};
  recipe.layout = Layout::kNchw;
  request.recipe = std::make_shared<const Recipe>(recipe);
  request.backend = "echo:1";

  REQUIRE(fixture.submit(std::move(request)).has_value());

  const FailedBatch failed = fixture.sink().wait_failed();
  REQUIRE(failed.error.code == Code::kUnsupported);
  REQUIRE_THAT(failed.error.message, Catch::Contains("echo:1: it stores no patches"));
}

}  // namespace millrace
