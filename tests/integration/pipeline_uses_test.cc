#include "daemon/cache/policy/use_table.h"
#include "daemon/plan/epoch_order.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TEST_CASE("a dataset is in use while a session runs epochs over it, and its orders are known",
          "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 12);
  UseTable table;
  PipelineFixture fixture({.roots = {folder.path()}, .slots = 2, .uses = &table});
  const auto dataset = *fixture.list(folder.path());
  REQUIRE(dataset->number() != DatasetNumber::kNone);
  REQUIRE_FALSE(table.forecast()->in_use(dataset->number()));

  EpochRequest epoch = epoch_of(dataset, 3);
  epoch.order.epoch = 0;
  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, epoch); });
  const CompletedBatch first = fixture.sink().wait_completed();
  const CompletedBatch second = fixture.sink().wait_completed();

  // Two slots, so two batches of three have begun. Who comes soon, who comes late, and who comes in the next epoch first:
  const double now = seconds_now();  // one moment for all, or later questions would have other answers
  const auto wait = [&](std::uint64_t place, std::uint64_t in_epoch) {
    EpochOrderSpec spec = epoch.order;
    spec.epoch = in_epoch;
    const EpochOrder order = *EpochOrder::create(spec);
    const DatasetMember sample = member_of(*dataset, order.batch(place / 3)[place % 3]);
    const auto forecast = table.forecast();
    return forecast->at(dataset->number(), now).expect(sample.sample, sample.listing).wait;
  };
  const auto position_in = [&](std::uint64_t place, std::uint64_t in_epoch) {
    EpochOrderSpec spec = epoch.order;
    const EpochOrder order = *EpochOrder::create(spec);
    const auto sample = static_cast<std::uint32_t>(raw(order.batch(place / 3)[place % 3]));
    spec.epoch = in_epoch;
    return EpochOrder::create(spec)->positions().of(sample);
  };
  REQUIRE(wait(6, 0) == 0);
  REQUIRE(wait(7, 0) > 0);
  REQUIRE(wait(11, 0) > wait(8, 0));
  // Once the next epoch is foreseen, those that had their turn wait in its order.
  const auto in_next_order = [&] {
    for (std::uint64_t a = 0; a < 6; ++a) {
      for (std::uint64_t b = 0; b < 6; ++b) {
        if (position_in(a, 1) + 1 < position_in(b, 1) && wait(a, 0) >= wait(b, 0)) return false;
      }
    }
    return true;
  };
  REQUIRE(eventually(in_next_order));

  REQUIRE(fixture.release(*first.tensor).has_value());
  REQUIRE(fixture.release(*second.tensor).has_value());
  for (int i = 0; i < 2; ++i) REQUIRE(fixture.release(*fixture.sink().wait_completed().tensor).has_value());
  fixture.sink().wait_ended();
  REQUIRE(table.forecast()->in_use(dataset->number()));  // another epoch is to be expected
  REQUIRE(wait(6, 0) > 0);

  fixture.close();
  REQUIRE_FALSE(table.forecast()->in_use(dataset->number()));
}

TEST_CASE("an epoch that is stopped has ended for the dataset's use as well", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 12);
  UseTable table;
  PipelineFixture fixture({.roots = {folder.path()}, .slots = 2, .uses = &table});
  const auto dataset = *fixture.list(folder.path());
  const auto rate = [&] { return table.forecast()->at(dataset->number(), seconds_now() + 1e6).rate(); };
  fixture.on_control([&] { fixture.pipeline().start_epoch(PipelineFixture::kSession, epoch_of(dataset, 3)); });
  fixture.sink().wait_completed();
  const double running = rate();

  fixture.on_control([&] { fixture.pipeline().stop_epoch(PipelineFixture::kSession, EpochStreamId{3}); });
  fixture.sink().wait_ended();

  // A million seconds after it began it would be a slow epoch; after it ended it is a long pause, with its speed known.
  REQUIRE(rate() > running);
}

TEST_CASE("what was read of a dataset knows which sample of which dataset it is", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 2);
  PipelineFixture fixture({.roots = {folder.path()}});
  const auto dataset = *fixture.list(folder.path());
  const SampleSource sample = DatasetSource{dataset, SampleId{1}};

  const Fetched of_dataset = fixture.fetch(sample);
  const Fetched of_path = fixture.fetch(PathSource{dataset->locate(SampleId{1}).file});

  REQUIRE(of_dataset.image->wish.member == member_of(*dataset, SampleId{1}));
  REQUIRE(of_dataset.image->wish.member.dataset == dataset->number());
  REQUIRE(of_dataset.image->wish.member.sample == 1);
  REQUIRE(of_path.image->wish.member == DatasetMember{});
}

}  // namespace
}  // namespace millrace
