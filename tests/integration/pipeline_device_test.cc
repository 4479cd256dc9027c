// Tensors in the memory of a device: whichever backend makes them, whatever goes wrong, they are those that host memory
// would have.
#include <catch2/catch.hpp>
#include <variant>

#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

constexpr std::uint32_t kDeviceFiles = 12;

enum class Where : std::uint8_t { kHost, kDevice };

std::shared_ptr<const Recipe> in_one_size() {
  return square(24);
}

std::shared_ptr<const Recipe> packed() {
  return std::make_shared<Recipe>(Recipe{.packing = Packing::kPacked});
}

// What a client would see of it, but for when and by whom it was made, and where it lies.
struct Seen {
  std::vector<std::uint8_t> bytes;
  std::vector<std::vector<std::byte>> records;
  std::vector<std::uint64_t> shape;
  std::vector<std::string> failures;
  std::string error;
  friend bool operator==(const Seen&, const Seen&) = default;
};

Seen seen(PipelineFixture& fixture, const CompletedBatch& batch) {
  Seen found;
  for (const SampleFailure& failure : batch.failures) found.failures.push_back(failure.error.message);
  if (!batch.tensor) return found;
  found.bytes = fixture.bytes(*batch.tensor);
  found.shape = batch.tensor->shape;
  for (std::uint32_t i = 0; i < batch.tensor->samples; ++i) {
    shm::SampleRecord record = fixture.record(*batch.tensor, i);
    record.pixels_offset -= batch.tensor->offset;
    record.fetch_us = record.queue_us = record.decode_us = record.transform_us = 0;
    record.unpacked = 0;  // which the backend says that made it
    std::memset(record.backend, 0, sizeof record.backend);
    const auto* const bytes = reinterpret_cast<const std::byte*>(&record);
    found.records.emplace_back(bytes, bytes + sizeof record);
  }
  return found;
}

// One batch of a pipeline of its own. `fails`: as a whole.
struct Way {
  Where tensors = Where::kHost;
  Where made = Where::kHost;
};
Seen run(const TempFolder& folder, Way way, const BatchRequest& wanted, bool fails = false) {
  MadeUpDevice device;
  PipelineFixture fixture(
      {.roots = {folder.path()}, .device = &device, .in_device_memory = way.tensors == Where::kDevice});
  BatchRequest request = wanted;
  request.backend = way.made == Where::kDevice ? "device" : "cpu";
  REQUIRE(fixture.submit(std::move(request)).has_value());
  if (fails) return Seen{.error = fixture.sink().wait_failed().error.message};
  return seen(fixture, fixture.sink().wait_completed());
}

// A device whose memory a session's tensors are in, on the way to a batch.
struct InDeviceMemory {
  explicit InDeviceMemory(std::uint32_t bad = kDeviceFiles) {
    write_images(folder.path(), kDeviceFiles, {bad});
    fixture.emplace(PipelineSetup{
        .roots = {folder.path()}, .slots = 1, .device = &device, .device_first = true, .in_device_memory = true});
  }
  void submit(std::string backend = "cpu") {
    BatchRequest request = request_of(folder.path(), kDeviceFiles, in_one_size());
    request.backend = std::move(backend);
    request.on_error = OnError::kZero;
    REQUIRE(fixture->submit(std::move(request)).has_value());
  }
  // All samples are made and staged; the device has the rest before it.
  void wait_until_it_is_finalized() {
    REQUIRE(eventually([&] { return device.waiting() == 1; }));
  }

  TempFolder folder;
  MadeUpDevice device;
  std::optional<PipelineFixture> fixture;
};

}  // namespace

TEST_CASE("a batch has the same pixels and records in either memory, made on either side", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), kDeviceFiles);
  for (const auto& recipe : {in_one_size(), packed()}) {
    CAPTURE(recipe->packing == Packing::kPacked);
    const BatchRequest request = request_of(folder.path(), kDeviceFiles, recipe);
    const Seen on_host = run(folder, {Where::kHost, Where::kHost}, request);

    const Seen staged = run(folder, {Where::kDevice, Where::kHost}, request);
    const Seen downloaded = run(folder, {Where::kHost, Where::kDevice}, request);
    const Seen never_on_host = run(folder, {Where::kDevice, Where::kDevice}, request);

    REQUIRE(on_host.records.size() == kDeviceFiles);
    REQUIRE(staged == on_host);
    REQUIRE(downloaded == on_host);
    REQUIRE(never_on_host == on_host);
  }
}

TEST_CASE("every policy for bad samples does in device memory what it does on the host", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), kDeviceFiles, {0, 5, 6, 11});
  for (const auto& recipe : {in_one_size(), packed()}) {
    for (const OnError on_error : {OnError::kSkip, OnError::kZero, OnError::kSubstitute, OnError::kFail}) {
      CAPTURE(recipe->packing == Packing::kPacked, static_cast<int>(on_error));
      BatchRequest request = request_of(folder.path(), kDeviceFiles, recipe);
      request.on_error = on_error;
      const bool fails = on_error == OnError::kFail;
      const Seen on_host = run(folder, {Where::kHost, Where::kHost}, request, fails);

      const Seen staged = run(folder, {Where::kDevice, Where::kHost}, request, fails);
      const Seen never_on_host = run(folder, {Where::kDevice, Where::kDevice}, request, fails);

      REQUIRE((fails || on_host.failures.size() == 4));
      REQUIRE(staged == on_host);
      REQUIRE(never_on_host == on_host);
    }
  }
}

TEST_CASE("what a device makes for its own memory does not pass through the host's", "[pipeline][integration]") {
  InDeviceMemory setup;
  const auto stagings = [&] {
    return setup.fixture->on_control(
        [&] { return dynamic_cast<const DeviceArena&>(setup.fixture->arena()).stagings(); });
  };
  setup.submit("device");
  const CompletedBatch by_device = setup.fixture->sink().wait_completed();
  const std::uint64_t of_device = stagings();
  REQUIRE(setup.fixture->release(*by_device.tensor).has_value());
  setup.submit("cpu");
  const CompletedBatch by_host = setup.fixture->sink().wait_completed();

  REQUIRE(of_device == 0);
  REQUIRE(stagings() == kDeviceFiles);
  REQUIRE(by_device.tensor->memory == 1);
  REQUIRE(by_host.tensor->memory == 1);
}

TEST_CASE("nothing of a batch that failed gets into the next one of its slot", "[pipeline][integration]") {
  InDeviceMemory setup(kDeviceFiles - 1);
  BatchRequest fails = request_of(setup.folder.path(), kDeviceFiles, in_one_size());
  fails.on_error = OnError::kFail;
  fails.backend = "cpu";  // so that images are staged
  BatchRequest other = request_of(setup.folder.path(), kDeviceFiles - 1, square(17));
  const Seen on_host = run(setup.folder, {Where::kHost, Where::kHost}, other);
  REQUIRE(setup.fixture->submit(std::move(fails)).has_value());
  setup.fixture->sink().wait_failed();

  other.backend = "device";
  REQUIRE(setup.fixture->submit(std::move(other)).has_value());

  REQUIRE(seen(*setup.fixture, setup.fixture->sink().wait_completed()) == on_host);
}

TEST_CASE("nobody is told of a batch before its last byte is in device memory", "[pipeline][integration]") {
  InDeviceMemory setup;
  setup.device.hold();
  setup.submit();
  setup.wait_until_it_is_finalized();

  setup.fixture->on_control([] {});

  REQUIRE(setup.fixture->sink().quiet());
  setup.device.let_go();
  REQUIRE(setup.fixture->sink().wait_completed().failures.empty());
}

TEST_CASE("host memory loses nothing with a device that was to write there", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), kDeviceFiles);
  const BatchRequest request = request_of(folder.path(), kDeviceFiles, in_one_size());
  const Seen on_host = run(folder, {Where::kHost, Where::kHost}, request);
  MadeUpDevice device;
  PipelineFixture fixture({.roots = {folder.path()}, .device = &device, .device_first = true});
  device.hold();
  REQUIRE(fixture.submit(request_of(folder.path(), kDeviceFiles, in_one_size())).has_value());
  REQUIRE(eventually([&] { return device.waiting() > 0; }));

  device.lose();

  REQUIRE(seen(fixture, fixture.sink().wait_completed()) == on_host);
}

TEST_CASE(
    "a batch whose device is lost before it begins, while it is made, or while it is finalized fails as unavailable",
    "[pipeline][integration]") {
  enum class When : std::uint8_t { kBefore, kWhileMade, kWhileItIsFinalized };
  for (const When when : {When::kBefore, When::kWhileMade, When::kWhileItIsFinalized}) {
    CAPTURE(static_cast<int>(when));
    InDeviceMemory setup(4);
    if (when == When::kBefore) setup.device.lose();
    if (when != When::kBefore) setup.device.hold();
    setup.submit(when == When::kWhileMade ? "" : "cpu");
    if (when == When::kWhileMade) REQUIRE(eventually([&] { return setup.device.waiting() > 0; }));
    if (when == When::kWhileItIsFinalized) setup.wait_until_it_is_finalized();

    setup.device.lose();

    REQUIRE(setup.fixture->sink().wait_failed().error.code == Code::kUnavailable);
    REQUIRE(eventually([&] { return setup.fixture->free_slots() == 1; }));
  }
}

TEST_CASE("a tensor in the memory of a device that is lost later can be released, and the next batch fails",
          "[pipeline][integration]") {
  InDeviceMemory setup;
  setup.submit();
  const CompletedBatch sealed = setup.fixture->sink().wait_completed();

  setup.device.lose();

  REQUIRE(setup.fixture->release(*sealed.tensor).has_value());
  setup.submit();
  REQUIRE(setup.fixture->sink().wait_failed().error.code == Code::kUnavailable);
}

TEST_CASE("a batch cancelled while it is finalized fails at once and its slot comes back when the device is done",
          "[pipeline][integration]") {
  InDeviceMemory setup(2);
  setup.device.hold();
  setup.submit();
  setup.wait_until_it_is_finalized();

  setup.fixture->on_control([&] { setup.fixture->pipeline().cancel(PipelineFixture::kSession, BatchId{1}); });

  REQUIRE(setup.fixture->sink().wait_failed().error.code == Code::kCancelled);
  REQUIRE(setup.fixture->free_slots() == 0);
  setup.device.let_go();
  REQUIRE(eventually([&] { return setup.fixture->free_slots() == 1; }));
}

TEST_CASE("device memory of a session that is closed while it is finalized is given back when the device is done",
          "[pipeline][integration]") {
  InDeviceMemory setup(2);
  setup.device.hold();
  setup.submit();
  setup.wait_until_it_is_finalized();

  setup.fixture->close();
  setup.fixture->drop_segment();

  REQUIRE(setup.device.allocations() == 1);
  setup.device.let_go();
  REQUIRE(eventually([&] { return setup.device.allocations() == 0; }));
  REQUIRE(setup.fixture->sink().quiet());
}

}  // namespace millrace
