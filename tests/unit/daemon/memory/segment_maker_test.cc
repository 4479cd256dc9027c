// Segments are made beside the control thread, handed out when their first slots are filled, filled in turns, and freed
// wherever the last user lets go of them.
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "daemon/memory/segment_maker.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/segment_budget.h"
#include "tests/support/host/short_of_room.h"

using namespace millrace;

namespace {

SegmentOrder slots_of(Bytes stride, std::uint32_t slots, std::uint32_t user = 0) {
  return {.size = 4096_B + stride * slots, .head = 4096_B, .stride = stride, .slots = slots, .user = user};
}

// The control thread's loop, run by the test, and what came to it.
struct MakerRig {
  explicit MakerRig(Bytes limit) : budget(limit) {}

  struct Asked {
    std::optional<Result<std::shared_ptr<Segment>>> made;
    std::vector<SegmentProgress> progress;
    std::shared_ptr<StopFlag> unwanted = std::make_shared<StopFlag>();
    Segment& segment() { return ***made; }
  };

  void ask(Asked& asked, const SegmentOrder& order) {
    Result<Charge> charge = budget.charge(order.size);
    REQUIRE(charge);
    maker->make(order, *std::move(charge), asked.unwanted,
                {.made =
                     [this, &asked, order](Result<std::shared_ptr<Segment>> made) {
                       if (made) REQUIRE((*made)->filled() >= order.head);
                       came.push_back(&asked);
                       asked.made.emplace(std::move(made));
                     },
                 .grown =
                     [this, &asked](SegmentProgress progress) {
                       came.push_back(&asked);
                       asked.progress.push_back(std::move(progress));
                     }});
  }
  template <class Done>
  void run_until(Done done) {
    const auto work = boost::asio::make_work_guard(control);
    control.restart();
    while (!done()) REQUIRE(control.run_one_for(std::chrono::seconds(30)) > 0);
  }
  void run_until_made(Asked& asked) {
    run_until([&] { return asked.made.has_value(); });
  }

  boost::asio::io_context control;
  SegmentBudget budget;
  std::unique_ptr<SegmentMaker> maker = std::make_unique<SegmentMaker>(control, budget.promises());
  std::vector<Asked*> came;  // whose answers, in order
};

std::uint64_t object_bytes(const Segment& segment) {
  struct stat status {};
  REQUIRE(::fstat(segment.read_only_fd(), &status) == 0);
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

TEST_CASE("a segment's charge is back as soon as its last user lets go, however long freeing it takes", "[serve]") {
  MakerRig rig(256_MiB);
  MakerRig::Asked large, next;
  rig.ask(large, slots_of(32_MiB, 4));
  rig.run_until_made(large);
  rig.run_until([&] { return large.segment().filled() == large.segment().size(); });
  rig.ask(next, slots_of(4096_B, 1));
  rig.run_until_made(next);  // so the thread that fills has let go of the large one

  large.made.reset();
  const Bytes used = rig.budget.used();

  CHECK(used == next.segment().size());
}

TEST_CASE("a made segment is charged until its last user lets go", "[serve]") {
  MakerRig rig(1_MiB);
  MakerRig::Asked asked;
  rig.ask(asked, slots_of(4096_B, 15));
  rig.run_until_made(asked);

  REQUIRE(*asked.made);
  CHECK(rig.budget.used() == 64_KiB);
  std::shared_ptr<Segment> second = **asked.made;
  asked.made.reset();
  CHECK(rig.budget.used() == 64_KiB);
  second.reset();
  CHECK(eventually([&] { return rig.budget.used() == 0_B; }));
}

TEST_CASE("a segment that nobody wants any more is not made", "[serve]") {
  MakerRig rig(1_GiB);
  MakerRig::Asked asked;
  asked.unwanted->stop();

  rig.ask(asked, slots_of(256_MiB, 2));
  rig.run_until_made(asked);

  REQUIRE_FALSE(*asked.made);
  CHECK(asked.made->error().code == Code::kCancelled);
  CHECK(rig.budget.used() == 0_B);
}

TEST_CASE("a segment that outlives its maker is freed all the same", "[serve]") {
  MakerRig rig(1_MiB);
  MakerRig::Asked asked;
  rig.ask(asked, slots_of(4096_B, 15));
  rig.run_until_made(asked);
  rig.maker.reset();
  CHECK(rig.budget.used() == 64_KiB);

  asked.made.reset();

  CHECK(rig.budget.used() == 0_B);
}

TEST_CASE("a small segment is handed out when all of it is filled", "[serve]") {
  MakerRig rig(64_MiB);
  MakerRig::Asked asked;

  rig.ask(asked, slots_of(4_MiB, 7));
  rig.run_until_made(asked);

  REQUIRE(*asked.made);
  CHECK(asked.segment().filled() == 4096_B + 28_MiB);
}

TEST_CASE("a large segment is handed out before it is filled, charged whole, and grows slot by slot", "[serve]") {
  MakerRig rig(1_GiB);
  MakerRig::Asked asked;
  const SegmentOrder order = slots_of(20_MiB, 6);

  rig.ask(asked, order);
  rig.run_until_made(asked);
  REQUIRE(*asked.made);
  CHECK(rig.budget.used() == order.size);
  CHECK(asked.progress.empty());
  rig.run_until([&] { return asked.segment().filled() == order.size && asked.progress.size() == 5; });

  for (std::uint32_t i = 0; i < 5; ++i) {
    CHECK(asked.progress[i].slots == i + 2);  // one was there when it was handed out
    CHECK_FALSE(asked.progress[i].no_room);
  }
  CHECK(object_bytes(asked.segment()) == order.size.count);
  CHECK(rig.budget.promised() == 0_B);
}

TEST_CASE("a segment is not handed out before all that lies in front of its slots is filled", "[serve]") {
  MakerRig rig(1_GiB);
  MakerRig::Asked asked;
  const SegmentOrder order{.size = 60_MiB, .head = 40_MiB, .stride = 10_MiB, .slots = 2};

  rig.ask(asked, order);
  rig.run_until_made(asked);

  REQUIRE(*asked.made);
  CHECK(asked.segment().filled() >= order.head);
}

TEST_CASE("a segment that is wanted whole is handed out when all of it is filled, however large it is", "[serve]") {
  MakerRig rig(1_GiB);
  MakerRig::Asked asked;
  SegmentOrder order = slots_of(20_MiB, 6);
  order.whole = true;

  rig.ask(asked, order);
  rig.run_until_made(asked);

  REQUIRE(*asked.made);
  CHECK(asked.segment().filled() == order.size);
  CHECK(asked.progress.empty());
}

TEST_CASE("an object is never longer than it is filled, but for the portion at hand", "[serve]") {
  MakerRig rig(2_GiB);
  MakerRig::Asked asked;

  rig.ask(asked, slots_of(512_MiB, 2));
  rig.run_until_made(asked);
  REQUIRE(*asked.made);
  const std::uint64_t object = object_bytes(asked.segment());
  const Bytes filled = asked.segment().filled();
  asked.unwanted->stop();

  CHECK(object <= (filled + 8_MiB).count);
}

TEST_CASE("another user's small segment is made while a large one is being filled", "[serve]") {
  MakerRig rig(8_GiB);
  MakerRig::Asked large, small;
  rig.ask(large, slots_of(64_MiB, 16, 1000));
  rig.run_until_made(large);

  rig.ask(small, slots_of(5_MiB, 4, 1001));
  rig.run_until_made(small);

  REQUIRE(*small.made);
  CHECK(large.segment().filled() < large.segment().size());
  large.unwanted->stop();
}

TEST_CASE("a segment whose client goes away is filled no more, and the charge goes with the last holder", "[serve]") {
  MakerRig rig(8_GiB);
  MakerRig::Asked asked;
  rig.ask(asked, slots_of(1_GiB, 4));
  rig.run_until_made(asked);
  REQUIRE(*asked.made);

  asked.unwanted->stop();
  asked.made.reset();

  CHECK(eventually([&] { return rig.budget.used() == 0_B; }));
  CHECK(eventually([&] { return rig.budget.promised() == 0_B; }));
  CHECK(asked.progress.empty());
}

TEST_CASE("a maker that finishes fills nothing any more", "[serve]") {
  MakerRig rig(8_GiB);
  MakerRig::Asked asked;
  rig.ask(asked, slots_of(1_GiB, 4));
  rig.run_until_made(asked);
  REQUIRE(*asked.made);

  rig.maker->finish();

  const Bytes filled = asked.segment().filled();
  CHECK(filled < asked.segment().size());
  CHECK(object_bytes(asked.segment()) == filled.count);
}

TEST_CASE("without room for the first slots a segment is refused and leaves no charge", "[serve]") {
  MakerRig rig(1_GiB);
  MakerRig::Asked asked;
  const ShortOfRoom full(12_MiB);

  rig.ask(asked, slots_of(20_MiB, 4));
  rig.run_until_made(asked);

  REQUIRE_FALSE(*asked.made);
  CHECK(asked.made->error().code == Code::kExhausted);
  CHECK_THAT(asked.made->error().message, Catch::Contains("/dev/shm") && Catch::Contains("--shm-size"));
  CHECK(eventually([&] { return rig.budget.used() == 0_B; }));
}

TEST_CASE("without room for the later slots a segment keeps those that it has, and pays for no others", "[serve]") {
  MakerRig rig(1_GiB);
  MakerRig::Asked asked;
  const ShortOfRoom full(76_MiB);

  rig.ask(asked, slots_of(20_MiB, 8));
  rig.run_until([&] { return !asked.progress.empty() && asked.progress.back().no_room.has_value(); });

  CHECK(asked.progress.back().slots == 3);
  CHECK(asked.progress.back().no_room->code == Code::kExhausted);
  CHECK_THAT(asked.progress.back().no_room->message, Catch::Contains("/dev/shm") && Catch::Contains("--shm-size"));
  CHECK(asked.segment().filled() == 4096_B + 60_MiB);
  CHECK(object_bytes(asked.segment()) == (4096_B + 60_MiB).count);
  CHECK(rig.budget.used() == 4096_B + 60_MiB);
  CHECK(rig.budget.promised() == 0_B);
  for (std::uint64_t at = 0; at < asked.segment().filled().count; at += 4096) asked.segment().data()[at] = std::byte{1};
  asked.made.reset();
  CHECK(eventually([&] { return rig.budget.used() == 0_B; }));
}
