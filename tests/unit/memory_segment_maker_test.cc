// Segments are made beside the control thread, and freed wherever the last user lets go of them.
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <optional>

#include "daemon/memory/segment_maker.h"
#include "tests/support/eventually.h"

using namespace millrace;

namespace {

// Asks for one segment and runs the control thread's loop here until it has an answer.
Result<std::shared_ptr<Segment>> made(SegmentMaker& maker, boost::asio::io_context& control, Bytes size,
                                      std::shared_ptr<const StopFlag> unwanted = std::make_shared<StopFlag>()) {
  std::optional<Result<std::shared_ptr<Segment>>> answer;
  const auto work = boost::asio::make_work_guard(control);
  maker.make(size, std::move(unwanted), [&](auto segment) { answer.emplace(std::move(segment)); });
  control.restart();
  while (!answer) REQUIRE(control.run_one_for(std::chrono::seconds(10)) > 0);
  return *std::move(answer);
}

}  // namespace

TEST_CASE("a made segment is charged until its last user lets go", "[serve]") {
  boost::asio::io_context control;
  SegmentBudget budget(1_MiB);
  SegmentMaker maker(control, budget);

  Result<std::shared_ptr<Segment>> segment = made(maker, control, 64_KiB);

  REQUIRE(segment);
  CHECK(budget.used() == 64_KiB);
  std::shared_ptr<Segment> second = *segment;
  segment->reset();
  CHECK(budget.used() == 64_KiB);
  second.reset();
  CHECK(eventually([&] { return budget.used() == 0_B; }));
}

TEST_CASE("a segment over the budget is an error on the control thread", "[serve]") {
  boost::asio::io_context control;
  SegmentBudget budget(1_MiB);
  SegmentMaker maker(control, budget);

  const Result<std::shared_ptr<Segment>> segment = made(maker, control, 2_MiB);

  REQUIRE_FALSE(segment);
  CHECK(segment.error().code == Code::kExhausted);
}

TEST_CASE("a segment that nobody wants any more is not made", "[serve]") {
  boost::asio::io_context control;
  SegmentBudget budget(1_GiB);
  SegmentMaker maker(control, budget);
  const auto unwanted = std::make_shared<StopFlag>();
  unwanted->stop();

  const Result<std::shared_ptr<Segment>> segment = made(maker, control, 512_MiB, unwanted);

  REQUIRE_FALSE(segment);
  CHECK(segment.error().code == Code::kCancelled);
  CHECK(budget.used() == 0_B);
}

TEST_CASE("a segment that outlives its maker is freed all the same", "[serve]") {
  boost::asio::io_context control;
  SegmentBudget budget(1_MiB);
  auto maker = std::make_unique<SegmentMaker>(control, budget);
  std::shared_ptr<Segment> segment = *made(*maker, control, 64_KiB);
  maker.reset();
  CHECK(budget.used() == 64_KiB);

  segment.reset();

  CHECK(budget.used() == 0_B);
}
