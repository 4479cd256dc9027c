// Which threads touch the pixels of a slot on the host: never the control thread.
#include <catch2/catch.hpp>

#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/host/touch_trap.h"

namespace millrace {
namespace {

constexpr std::uint32_t kTouchFiles = 6, kSide = 64;

// The threads that touch the pixels of the first batch of a pipeline, less the pages that end in records; the control
// thread's number is `control`.
struct Touched {
  std::set<int> by;
  int control = 0;
};
Touched run(PipelineSetup setup, const TempFolder& folder, OnError on_error) {
  setup.roots = {folder.path()};
  setup.slots = 1;
  PipelineFixture fixture(std::move(setup));
  BatchRequest request = request_of(folder.path(), kTouchFiles, square(kSide));
  request.on_error = on_error;
  const std::size_t tensor = 3 * kSide * kSide * kTouchFiles;
  Touched touched;
  touched.control = fixture.on_control([] { return TouchTrap::this_thread(); });
  const TouchTrap trap(fixture.slot(SlotIndex{0}).first(tensor));

  REQUIRE(fixture.submit(std::move(request)).has_value());

  REQUIRE(fixture.sink().wait_completed().tensor);
  touched.by = trap.touched_by();
  return touched;
}

}  // namespace

TEST_CASE("the control thread touches no pixel whatever is made up for", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), kTouchFiles, {0, 3});
  for (const OnError on_error : {OnError::kSkip, OnError::kZero, OnError::kSubstitute}) {
    CAPTURE(static_cast<int>(on_error));

    const Touched touched = run({}, folder, on_error);

    REQUIRE_FALSE(touched.by.empty());
    REQUIRE(touched.by.count(touched.control) == 0);
  }
}

TEST_CASE("the control thread touches no pixel of a fresh daemon's first batch, all of it missing",
          "[pipeline][integration]") {
  const TempFolder empty;

  const Touched touched = run({}, empty, OnError::kZero);

  REQUIRE(touched.by.size() == 1);
  REQUIRE(touched.by.count(touched.control) == 0);
}

TEST_CASE("the control thread touches no pixel when no backend is left", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), kTouchFiles);
  MadeUpDevice device;
  device.lose();

  const Touched touched = run({.backend = std::make_unique<DeviceBackend>(device)}, folder, OnError::kZero);

  REQUIRE(touched.by.size() == 1);
  REQUIRE(touched.by.count(touched.control) == 0);
}

}  // namespace millrace
