// What on_error makes of a batch with bad samples, as its client sees it: pixels, records and errors.
#include <catch2/catch.hpp>

#include "tests/integration/holding_backend.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

constexpr std::uint32_t kFiles = 4;

// Sample i has the id 100 + i; what is in `bad` cannot be decoded.
struct Files {
  explicit Files(const std::vector<std::uint32_t>& bad) { write_images(folder.path(), kFiles, bad); }

  BatchRequest request(OnError on_error, Packing packing = Packing::kOneSize) const {
    Recipe recipe{.packing = packing};
    if (packing == Packing::kOneSize) recipe.resize = ExactSize{{16, 16}};
    BatchRequest wanted = request_of(folder.path(), kFiles, std::make_shared<const Recipe>(recipe));
    for (std::uint32_t i = 0; i < kFiles; ++i) wanted.samples[i].id = SampleId{100 + i};
    wanted.on_error = on_error;
    return wanted;
  }
  std::string path(std::uint32_t index) const { return folder / (std::to_string(1000 + index).substr(1) + ".jpg"); }

  TempFolder folder;
};

using Image = std::vector<std::uint8_t>;

// Of the sample at `position`, as its record says where they are.
Image pixels(const PipelineFixture& fixture, const SealedTensor& tensor, std::uint32_t position) {
  const shm::SampleRecord record = fixture.record(tensor, position);
  const Image all = fixture.bytes(tensor);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(record.pixels_offset - tensor.offset);
  return {begin, begin + static_cast<std::ptrdiff_t>(record.pixels_bytes)};
}

// Of each image alone, which is what every batch must have of it.
std::vector<Image> expected(const Files& files, Packing packing, const std::vector<std::uint32_t>& good) {
  PipelineFixture fixture({.roots = {files.folder.path()}});
  std::vector<Image> images(kFiles);
  for (const std::uint32_t i : good) {
    BatchRequest one = files.request(OnError::kFail, packing);
    one.samples = {one.samples[i]};
    REQUIRE(fixture.submit(std::move(one)).has_value());
    const CompletedBatch batch = fixture.sink().wait_completed();
    images[i] = pixels(fixture, *batch.tensor, 0);
    REQUIRE(fixture.release(*batch.tensor).has_value());
  }
  return images;
}

constexpr auto kBroken = static_cast<std::uint16_t>(Code::kInvalid);

}  // namespace

TEST_CASE("under skip the tensor has the good samples in order, each with its own record", "[pipeline][integration]") {
  const auto packing = GENERATE(Packing::kOneSize, Packing::kPacked);
  const Files files({0, 2});
  const std::vector<Image> images = expected(files, packing, {1, 3});
  PipelineFixture fixture({.roots = {files.folder.path()}});

  REQUIRE(fixture.submit(files.request(OnError::kSkip, packing)).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE(batch.tensor->samples == 2);
  for (const std::uint32_t position : {0U, 1U}) {
    const std::uint32_t sample = 2 * position + 1;
    const shm::SampleRecord record = fixture.record(*batch.tensor, position);
    REQUIRE(record.id == 100 + sample);
    REQUIRE(record.index == sample);
    REQUIRE(record.status == 0);
    REQUIRE(pixels(fixture, *batch.tensor, position) == images[sample]);
  }
}

TEST_CASE("under zero a bad sample is blank and its record says so", "[pipeline][integration]") {
  const auto packing = GENERATE(Packing::kOneSize, Packing::kPacked);
  const Files files({2});
  const std::vector<Image> images = expected(files, packing, {0, 1, 3});
  PipelineFixture fixture({.roots = {files.folder.path()}});

  for (int round = 0; round < 3; ++round) {  // in slots that had other pixels before
    REQUIRE(fixture.submit(files.request(OnError::kZero, packing)).has_value());
    const CompletedBatch batch = fixture.sink().wait_completed();

    REQUIRE(batch.tensor->samples == kFiles);
    const shm::SampleRecord record = fixture.record(*batch.tensor, 2);
    REQUIRE(record.id == 102);
    REQUIRE(record.flags == shm::kZeroed);
    REQUIRE(record.status == kBroken);
    REQUIRE(pixels(fixture, *batch.tensor, 2) == Image(packing == Packing::kPacked ? 0 : 16 * 16 * 3, 0));
    for (const std::uint32_t good : {0U, 1U, 3U}) REQUIRE(pixels(fixture, *batch.tensor, good) == images[good]);
    REQUIRE(fixture.release(*batch.tensor).has_value());
  }
}

TEST_CASE("under substitute the nearest good sample stands in, and the record says for whom and why",
          "[pipeline][integration]") {
  const auto packing = GENERATE(Packing::kOneSize, Packing::kPacked);
  const Files files({0, 3});
  const std::vector<Image> images = expected(files, packing, {1, 2});
  PipelineFixture fixture({.roots = {files.folder.path()}});

  REQUIRE(fixture.submit(files.request(OnError::kSubstitute, packing)).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  const std::uint32_t from[kFiles] = {1, 1, 2, 2};
  for (std::uint32_t position = 0; position < kFiles; ++position) {
    const bool substituted = from[position] != position;
    const shm::SampleRecord record = fixture.record(*batch.tensor, position);
    CAPTURE(position);
    REQUIRE(record.id == 100 + from[position]);
    REQUIRE(record.index == position);
    REQUIRE(record.flags == (substituted ? shm::kSubstituted : 0));
    REQUIRE(record.status == (substituted ? kBroken : 0));
    REQUIRE(pixels(fixture, *batch.tensor, position) == images[from[position]]);
  }
}

TEST_CASE("under skip a batch without a good sample is completed without a tensor, and its slot is free",
          "[pipeline][integration]") {
  const Files files({0, 1, 2, 3});
  PipelineFixture fixture({.roots = {files.folder.path()}});

  REQUIRE(fixture.submit(files.request(OnError::kSkip)).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE_FALSE(batch.tensor.has_value());
  REQUIRE(batch.failures.size() == kFiles);
  REQUIRE(fixture.free_slots() == 3);
}

TEST_CASE("under substitute a batch without a good sample fails and says that none can stand in",
          "[pipeline][integration]") {
  const Files files({0, 1, 2, 3});
  PipelineFixture fixture({.roots = {files.folder.path()}});

  REQUIRE(fixture.submit(files.request(OnError::kSubstitute)).has_value());
  const FailedBatch batch = fixture.sink().wait_failed();

  REQUIRE(batch.error.code == Code::kInvalid);
  REQUIRE_THAT(batch.error.message,
               Catch::Contains("sample 0 (" + files.path(0) + "): ") && Catch::Contains("none can stand in"));
  REQUIRE_THAT(batch.error.message, !Catch::Contains("is fail"));
}

TEST_CASE("under fail the error names the lowest-numbered bad sample, whichever turned out bad first",
          "[pipeline][integration]") {
  const Files files({1, 3});
  PipelineFixture fixture({.roots = {files.folder.path()}});

  for (int round = 0; round < 20; ++round) {
    REQUIRE(fixture.submit(files.request(OnError::kFail)).has_value());
    const FailedBatch batch = fixture.sink().wait_failed();

    REQUIRE(batch.error.code == Code::kInvalid);
    REQUIRE_THAT(batch.error.message, Catch::Contains("sample 1 (" + files.path(1) + "): "));
    REQUIRE(eventually([&] { return fixture.free_slots() == 3; }));
  }
}

TEST_CASE("under fail a batch fails no sooner than its lowest-numbered bad sample is known",
          "[pipeline][integration]") {
  const Files files({2});
  auto holding = std::make_unique<HoldingBackend>(8);
  HoldingBackend& backend = *holding;
  PipelineSetup setup{.roots = {files.folder.path()}};
  setup.backend = std::move(holding);
  PipelineFixture fixture(std::move(setup));

  REQUIRE(fixture.submit(files.request(OnError::kFail)).has_value());
  fixture.wait_until_nothing_is_read();  // the header of number 2 is none, and 0 and 1 may be bad yet
  REQUIRE(fixture.sink().quiet());
  REQUIRE(eventually([&] {
    backend.finish_all();
    return !fixture.sink().quiet();
  }));

  REQUIRE_THAT(fixture.sink().wait_failed().error.message, Catch::Contains("sample 2 (" + files.path(2) + "): "));
}

TEST_CASE("under the guard a batch without a good sample fails, and one good sample is enough",
          "[pipeline][integration]") {
  const auto on_error = GENERATE(OnError::kSkip, OnError::kSubstitute);
  const auto packing = GENERATE(Packing::kOneSize, Packing::kPacked);
  const Files none({0, 1, 2, 3}), one({0, 1, 3});
  PipelineFixture fixture({.roots = {none.folder.path(), one.folder.path()}});
  BatchRequest fails = none.request(on_error, packing), completes = one.request(on_error, packing);
  fails.guard = completes.guard = Guard::kOn;

  REQUIRE(fixture.submit(std::move(fails)).has_value());
  REQUIRE_THAT(fixture.sink().wait_failed().error.message,
               Catch::Contains("4 of the batch's 4 samples are bad") && Catch::Contains(none.path(0)));
  REQUIRE(fixture.submit(std::move(completes)).has_value());

  REQUIRE(fixture.sink().wait_completed().failures.size() == 3);
}

TEST_CASE("a batch that fails because no sample is good says which on_error was in force, and what else there is",
          "[pipeline][integration]") {
  const auto packing = GENERATE(Packing::kOneSize, Packing::kPacked);
  const Files none({0, 1, 2, 3});
  PipelineFixture fixture({.roots = {none.folder.path()}});
  std::uint64_t number = 0;  // a batch that has failed may be under way still
  const auto message = [&](OnError on_error, Guard guard) {
    BatchRequest request = none.request(on_error, packing);
    request.id = BatchId{++number};
    request.guard = guard;
    REQUIRE(fixture.submit(std::move(request)).has_value());
    return fixture.sink().wait_failed().error.message;
  };

  REQUIRE_THAT(message(OnError::kFail, Guard::kOff),
               Catch::Contains("on_error is fail") && Catch::Contains("skip, zero or substitute keep the others"));
  REQUIRE_THAT(message(OnError::kSubstitute, Guard::kOff),
               Catch::Contains("on_error is substitute") && Catch::Contains("skip leaves bad ones out, zero blanks"));
  for (const OnError drawn : {OnError::kSkip, OnError::kSubstitute})
    REQUIRE_THAT(message(drawn, Guard::kOn),
                 Catch::Contains("No on_error was chosen") && Catch::Contains("set on_error to skip or zero"));
}

TEST_CASE("under zero a batch without a good sample is completed, each blank", "[pipeline][integration]") {
  const auto packing = GENERATE(Packing::kOneSize, Packing::kPacked);
  const Files none({0, 1, 2, 3});
  PipelineFixture fixture({.roots = {none.folder.path()}});

  REQUIRE(fixture.submit(none.request(OnError::kZero, packing)).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE(batch.failures.size() == kFiles);
  REQUIRE(batch.tensor.has_value());
  for (std::uint32_t i = 0; i < kFiles; ++i) REQUIRE((fixture.record(*batch.tensor, i).flags & shm::kZeroed) != 0);
}

}  // namespace millrace
