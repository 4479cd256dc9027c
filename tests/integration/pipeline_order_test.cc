// What goes first, how much is read ahead, and what a backend is told, seen by a backend that keeps its jobs.
#include <catch2/catch.hpp>

#include "tests/integration/holding_backend.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

// A pipeline over `count` images and a backend that keeps what it is given.
struct Held {
  Held(std::uint32_t count, std::uint32_t depth, Bytes encoded_in_flight) {
    write_images(folder.path(), count);
    auto holding = std::make_unique<HoldingBackend>(depth);
    backend = holding.get();
    PipelineSetup setup{.roots = {folder.path()}, .encoded_in_flight = encoded_in_flight};
    setup.backend = std::move(holding);
    fixture.emplace(std::move(setup));
  }

  void submit(std::uint64_t id, std::uint32_t count, std::shared_ptr<const Recipe> recipe, Priority priority) {
    BatchRequest request = request_of(folder.path(), count, std::move(recipe));
    request.id = BatchId{id};
    request.priority = priority;
    REQUIRE(fixture->submit(std::move(request)).has_value());
  }

  TempFolder folder;
  HoldingBackend* backend = nullptr;
  std::optional<PipelineFixture> fixture;
};

}  // namespace

TEST_CASE("of the batches that wait for a slot the most urgent is the next", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 2);
  PipelineFixture fixture({.roots = {folder.path()}, .slots = 1});
  const Priority priorities[] = {Priority::kNormal, Priority::kLow, Priority::kNormal, Priority::kHigh};

  for (std::uint64_t id = 0; id < 4; ++id) {
    BatchRequest request = request_of(folder.path(), 2, square(16));
    request.id = BatchId{id};
    request.priority = priorities[id];
    REQUIRE(fixture.submit(std::move(request)).has_value());
  }
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 4; ++i) {
    const CompletedBatch batch = fixture.sink().wait_completed();
    order.push_back(raw(batch.id));
    REQUIRE(fixture.release(*batch.tensor).has_value());
  }

  REQUIRE(order == std::vector<std::uint64_t>{0, 3, 2, 1});
}

TEST_CASE("a host of many lanes does not read a batch in more portions", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 64);
  PipelineSetup setup{.roots = {folder.path()}};
  setup.backend = std::make_unique<HoldingBackend>(128, 64);
  PipelineFixture fixture(std::move(setup));

  REQUIRE(fixture.submit(request_of(folder.path(), 64, square(16))).has_value());
  fixture.wait_until_nothing_is_read();

  REQUIRE(fixture.fetch_tasks() == 8);
}

TEST_CASE("samples of an urgent batch get eight parts of the lanes, and its user's other ones their two",
          "[pipeline][integration]") {
  constexpr std::uint32_t kSamples = 128;
  Held held(kSamples, 1, 64_MiB);
  const auto patient = square(16), urgent = square(16);
  held.submit(1, kSamples, patient, Priority::kNormal);
  held.fixture->wait_until_nothing_is_read();
  const auto begun = held.backend->given().size();
  held.submit(2, kSamples, urgent, Priority::kHigh);
  held.fixture->wait_until_nothing_is_read();

  const auto given = [&](const std::shared_ptr<const Recipe>& recipe) {
    const std::vector<HoldingBackend::Given> all = held.backend->given();
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const auto& one) { return one.recipe == recipe; }));
  };
  REQUIRE(eventually([&] {
    held.backend->finish_all();
    held.fixture->on_control([] {});
    return given(urgent) == kSamples;
  }));

  const std::size_t patiently = given(patient) - begun;
  CHECK(patiently >= kSamples / 8);
  CHECK(patiently <= kSamples / 2);
}

TEST_CASE("samples of an urgent batch are read before those of one that began earlier", "[pipeline][integration]") {
  // Turns are charged by time, and a machine at work can make a read long. So the earlier batch has far more to read.
  constexpr std::uint32_t kSamples = 192, kUrgent = 48;
  Held held(kSamples, 8, 1_B);
  held.submit(1, kSamples, square(16), Priority::kNormal);
  held.fixture->wait_until_nothing_is_read();
  held.submit(2, kUrgent, square(16), Priority::kHigh);

  REQUIRE(eventually([&] {
    held.backend->finish_all();
    return !held.fixture->sink().quiet();
  }));

  REQUIRE(raw(held.fixture->sink().wait_completed().id) == 2);
}

TEST_CASE("reading stops at the budget of encoded bytes and goes on as they are decoded", "[pipeline][integration]") {
  constexpr std::uint32_t kSamples = 64;
  constexpr Bytes kFile = 32_KiB, kBudget = 256_KiB;
  constexpr std::uint32_t kTasks = 8;
  Held held(kSamples, 8, kBudget);
  for (std::uint32_t i = 0; i < kSamples; ++i) {  // as large on the disk, whatever is in it: nobody decodes
    std::vector<std::byte> bytes = make_png_header(40 + i, 30);
    bytes.resize(kFile.count);
    write_bytes(held.folder / (std::to_string(1000 + i).substr(1) + ".jpg"), bytes);
  }
  // Eight tasks are begun while there is room, each for an eighth of the budget, and one file more.
  const std::uint64_t most = 2 * kBudget.count + kTasks * kFile.count;
  const auto encoded = [&] {
    return static_cast<std::uint64_t>(held.fixture->counters().stored(MetricId::encoded_in_flight));
  };

  held.submit(1, kSamples, square(16), Priority::kNormal);
  held.fixture->wait_until_nothing_is_read();

  REQUIRE(encoded() >= kBudget.count);
  REQUIRE(encoded() <= most);
  REQUIRE(eventually([&] {
    held.backend->finish_all();
    REQUIRE(encoded() <= most);
    return !held.fixture->sink().quiet();
  }));
  REQUIRE(held.fixture->sink().wait_completed().tensor->samples == kSamples);
  REQUIRE(encoded() == 0);
}

TEST_CASE("a backend is told of every batch how exact it shall be, of an epoch's, too", "[pipeline][integration]") {
  Held held(3, 8, 64_MiB);
  const auto dataset = *held.fixture->list(held.folder.path());
  const auto wanted = GENERATE(Fidelity::kExact, Fidelity::kFast);
  BatchRequest batch = request_of(held.folder.path(), 3, square(16));
  batch.fidelity = wanted;
  EpochRequest epoch = epoch_of(dataset, 3);
  epoch.fidelity = wanted;

  REQUIRE(held.fixture->submit(std::move(batch)).has_value());
  held.fixture->on_control([&] { held.fixture->pipeline().start_epoch(PipelineFixture::kSession, epoch); });
  REQUIRE(eventually([&] {
    held.backend->finish_all();
    return held.backend->given().size() == 6;
  }));

  for (const HoldingBackend::Given& given : held.backend->given()) REQUIRE(given.fidelity == wanted);
}

TEST_CASE("what is asked for fast is made otherwise than what is asked for exactly", "[pipeline][integration]") {
  TempFolder folder;
  write_bytes(folder / "000.jpg", make_jpeg({.pixels = make_pixels(400, 300, 3, 7)}));
  PipelineFixture fixture({.roots = {folder.path()}});

  std::vector<std::vector<std::uint8_t>> pixels;
  for (const Fidelity fidelity : {Fidelity::kExact, Fidelity::kFast, Fidelity::kExact}) {
    BatchRequest request = request_of(folder.path(), 1, square(48));
    request.fidelity = fidelity;
    REQUIRE(fixture.submit(std::move(request)).has_value());
    pixels.push_back(fixture.bytes(*fixture.sink().wait_completed().tensor));
  }

  REQUIRE(pixels[1] != pixels[0]);
  REQUIRE(pixels[2] == pixels[0]);
}

TEST_CASE("a client that waits for a batch hears that its last sample has ended before it is sealed",
          "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 6, {2});
  PipelineFixture fixture({.roots = {folder.path()}});
  BatchRequest request = request_of(folder.path(), 6, square(16));
  request.on_error = OnError::kSkip;  // so that there is something to repair

  REQUIRE(fixture.submit(std::move(request)).has_value());
  const auto heard = fixture.sink().wait_ending().time_since_epoch();
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE(static_cast<std::uint64_t>(std::chrono::nanoseconds(heard).count()) <= batch.tensor->sealed_at_ns);
}

}  // namespace millrace
