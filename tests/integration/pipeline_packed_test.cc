// Packed batches whose pictures do not fit: into the slot, or into the budget of encoded bytes.
#include <catch2/catch.hpp>

#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

std::shared_ptr<const Recipe> whole_pictures() {
  return std::make_shared<Recipe>(Recipe{.packing = Packing::kPacked});
}

// Six pictures, of which number 2 is nothing but a header that claims 13000x13000 pixels.
void write_with_a_false_claim(const TempFolder& folder) {
  write_images(folder.path(), 6);
  write_bytes(folder / "002.jpg", make_png_header(13'000, 13'000));
}

BatchRequest packed_request(const TempFolder& folder, std::uint32_t count, OnError on_error) {
  BatchRequest request = request_of(folder.path(), count, whole_pictures());
  request.on_error = on_error;
  return request;
}

std::vector<std::uint64_t> ids(const PipelineFixture& fixture, const CompletedBatch& batch) {
  std::vector<std::uint64_t> found;
  for (std::uint32_t i = 0; i < batch.tensor->samples; ++i) found.push_back(fixture.record(*batch.tensor, i).id);
  return found;
}

}  // namespace

TEST_CASE("a picture that claims more than the slot costs a packed batch that picture alone",
          "[pipeline][integration]") {
  TempFolder folder;
  write_with_a_false_claim(folder);
  PipelineFixture fixture({.roots = {folder.path()}, .slot_bytes = 256_KiB});
  const auto [on_error, kept] =
      GENERATE(table<OnError, std::vector<std::uint64_t>>({{OnError::kSkip, {0, 1, 3, 4, 5}},
                                                           {OnError::kZero, {0, 1, 2, 3, 4, 5}},
                                                           {OnError::kSubstitute, {0, 1, 1, 3, 4, 5}}}));

  REQUIRE(fixture.submit(packed_request(folder, 6, on_error)).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE(batch.failures.size() == 1);
  REQUIRE(batch.failures[0].index == 2);
  REQUIRE(batch.failures[0].error.code == Code::kExhausted);
  REQUIRE_THAT(batch.failures[0].error.message, Catch::Contains("507") && Catch::Contains("slot_bytes of at least"));
  REQUIRE(ids(fixture, batch) == kept);
}

TEST_CASE("under on_error fail the packed batch fails and names the picture", "[pipeline][integration]") {
  TempFolder folder;
  write_with_a_false_claim(folder);
  PipelineFixture fixture({.roots = {folder.path()}, .slot_bytes = 256_KiB});

  REQUIRE(fixture.submit(packed_request(folder, 6, OnError::kFail)).has_value());
  const FailedBatch batch = fixture.sink().wait_failed();

  REQUIRE(batch.error.code == Code::kExhausted);
  REQUIRE_THAT(batch.error.message, Catch::Contains("002.jpg") && Catch::Contains("slot_bytes of at least"));
}

TEST_CASE("of pictures that do not fit together the largest give way, the later one of two alike",
          "[pipeline][integration]") {
  TempFolder folder;
  for (const auto& [name, width] : {std::pair("000", 60), {"001", 90}, {"002", 30}, {"003", 90}, {"004", 40}})
    write_bytes(folder / (std::string(name) + ".jpg"),
                make_jpeg({.pixels = make_pixels(static_cast<std::uint32_t>(width), 40, 3, 1)}));
  // Room for all but one of the two that are 90 wide.
  PipelineFixture fixture(
      {.roots = {folder.path()}, .slot_bytes = Bytes{(60 + 90 + 30 + 40) * 40 * 3 + 3 * 64 + 5 * 128}});

  REQUIRE(fixture.submit(packed_request(folder, 5, OnError::kSkip)).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE(batch.failures.size() == 1);
  REQUIRE(ids(fixture, batch) == std::vector<std::uint64_t>{0, 1, 2, 4});
}

TEST_CASE("an epoch of packed batches under skip loses the false claim and no batch", "[pipeline][integration]") {
  TempFolder folder;
  write_with_a_false_claim(folder);
  PipelineFixture fixture({.roots = {folder.path()}, .slot_bytes = 256_KiB});
  EpochRequest request = epoch_of(*fixture.list(folder.path()), 2);
  request.recipe = whole_pictures();
  request.on_error = OnError::kSkip;

  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, request); });
  std::uint32_t good = 0;
  for (int i = 0; i < 3; ++i) good += fixture.sink().wait_completed().tensor->samples;

  REQUIRE(good == 5);
  REQUIRE(fixture.sink().wait_ended() == EpochStreamId{3});
}

TEST_CASE("a packed batch whose records alone do not fit the slot is refused", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 100);
  PipelineFixture fixture({.roots = {folder.path()}, .slot_bytes = 8_KiB});
  EpochRequest epoch = epoch_of(*fixture.list(folder.path()), 100);
  epoch.recipe = whole_pictures();

  const Result<void> refused = fixture.submit(packed_request(folder, 100, OnError::kSkip));
  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, epoch); });

  REQUIRE(refused.error().code == Code::kExhausted);
  REQUIRE_THAT(refused.error().message, Catch::Contains("slot_bytes of at least 12800"));
  REQUIRE(fixture.sink().wait_epoch_error().code == Code::kExhausted);
}

TEST_CASE("a packed batch of more encoded bytes than the budget has the same pixels as under a large one",
          "[pipeline][integration]") {
  TempFolder folder;
  for (std::uint32_t i = 0; i < 12; ++i)
    write_bytes(folder / (std::to_string(1000 + i).substr(1) + ".jpg"),
                make_jpeg({.pixels = make_pixels(100 + i, 80, 3, i), .quality = 99}));
  PipelineFixture ample({.roots = {folder.path()}});
  PipelineFixture tight({.roots = {folder.path()}, .encoded_in_flight = 30_KiB});

  REQUIRE(ample.submit(packed_request(folder, 12, OnError::kFail)).has_value());
  REQUIRE(tight.submit(packed_request(folder, 12, OnError::kFail)).has_value());
  const CompletedBatch expected = ample.sink().wait_completed();
  const CompletedBatch made = tight.sink().wait_completed();

  REQUIRE(made.failures.empty());
  REQUIRE(tight.bytes(*made.tensor) == ample.bytes(*expected.tensor));
  REQUIRE(tight.counters().stored(MetricId::encoded_in_flight) == 0);
}

TEST_CASE("a file that changes its size between the two readings is an error of its sample",
          "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 9);
  PipelineSetup setup{.roots = {folder.path()}, .encoded_in_flight = Bytes{1}};
  setup.after_fetch = [&] { write_bytes(folder / "008.jpg", make_jpeg({.pixels = make_pixels(90, 90, 3, 1)})); };
  setup.after_how_many = 9;  // eight are begun while there is room; of the ninth the header alone is read
  PipelineFixture fixture(std::move(setup));

  REQUIRE(fixture.submit(packed_request(folder, 9, OnError::kSkip)).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE(batch.failures.size() == 1);
  REQUIRE(batch.failures[0].index == 8);
  REQUIRE_THAT(batch.failures[0].error.message, Catch::Contains("48x38") && Catch::Contains("90x90"));
  REQUIRE(batch.tensor->samples == 8);
}

TEST_CASE("one file over the whole budget of encoded bytes is read all the same", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 4);
  std::vector<std::byte> large = make_jpeg({.pixels = make_pixels(40, 30, 3, 1)});
  large.resize(large.size() + 200'000);
  write_bytes(folder / "001.jpg", large);
  PipelineFixture fixture({.roots = {folder.path()}, .encoded_in_flight = 64_KiB});

  REQUIRE(fixture.submit(packed_request(folder, 4, OnError::kSkip)).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE(batch.failures.empty());
  REQUIRE(batch.tensor->samples == 4);
}

}  // namespace millrace
