// Epochs whose order their clients say.
#include <catch2/catch.hpp>

#include "daemon/pipeline/epoch/epoch_run.h"

namespace millrace {
namespace {

EpochRun given_epoch(std::uint32_t samples) {
  std::vector<Dataset::Entry> entries;
  for (std::uint32_t i = 0; i < samples; ++i) entries.emplace_back(i, 1, 10 + i);
  EpochRequest request{.id = EpochStreamId{5},
                       .dataset = std::make_shared<Dataset>("/data", std::string(samples, 'a'), std::move(entries),
                                                            std::vector<std::string>{}, 42),
                       .recipe = std::make_shared<Recipe>(),
                       .order_by = OrderBy::kClient};
  request.order = EpochOrderSpec{.samples = samples, .batch_size = 4};
  return EpochRun(std::move(request), std::nullopt);
}

std::vector<std::uint64_t> ids_of(const BatchRequest& batch) {
  std::vector<std::uint64_t> ids;
  for (const SampleRequest& sample : batch.samples) ids.push_back(raw(sample.id));
  return ids;
}

struct Silent : BatchSink {
  void ending() override {}
  void completed(const CompletedBatch&) override {}
  void failed(const FailedBatch&) override {}
  void epoch_started(EpochStreamId, std::uint64_t batches, std::uint64_t, std::uint64_t) override { started = batches; }
  void epoch_failed(EpochStreamId, const Error& error) override { goodbye = error.message; }
  void epoch_given_up(EpochStreamId, const Error&, const SampleFailure&) override {}
  void epoch_ended(EpochStreamId) override { goodbye = "ended"; }
  std::uint64_t started = 99;
  std::string goodbye;
};

TEST_CASE("a given epoch's batches are those that were given, one part after the other", "[pipeline]") {
  EpochRun epoch = given_epoch(9);
  Silent sink;
  epoch.announce(sink);
  CHECK(sink.started == 0);
  CHECK_FALSE(epoch.has_next(9));
  CHECK_FALSE(epoch.next());
  CHECK_FALSE(epoch.over());  // more may be given

  epoch.give({.sizes = {2, 1}, .samples = {8, 8, 3}}, {});
  epoch.give({.sizes = {1}, .samples = {0}, .draws = {77}, .last = true}, {});
  const auto first = epoch.next(), second = epoch.next(), third = epoch.next();

  CHECK(ids_of(*first) == std::vector<std::uint64_t>{8, 8});
  CHECK(first->samples[1].label == 18);
  CHECK_FALSE(first->samples[0].draw.has_value());
  CHECK(ids_of(*second) == std::vector<std::uint64_t>{3});
  CHECK(ids_of(*third) == std::vector<std::uint64_t>{0});
  CHECK(third->samples[0].draw == 77);
  CHECK(third->id == BatchId{2});
  CHECK(epoch.samples_begun() == 4);
  CHECK(epoch.mark_after(third->id).order_by == OrderBy::kClient);
  CHECK_FALSE(epoch.over());  // they are under way
}

TEST_CASE("a given epoch is over once all that was given has ended, and not before the last was given", "[pipeline]") {
  EpochRun epoch = given_epoch(9);
  Silent sink;
  epoch.give({.sizes = {1}, .samples = {1}}, {});
  epoch.next();
  epoch.ended(sink, BatchId{0}, CompletedBatch{.id = BatchId{0}});
  CHECK_FALSE(epoch.over());

  epoch.give({.last = true}, {});

  CHECK(epoch.all_given());
  CHECK(epoch.over());
  epoch.say_goodbye(sink);
  CHECK(sink.goodbye == "ended");
}

TEST_CASE("an interrupted given epoch says why unless all of it was pushed", "[pipeline]") {
  EpochRun waiting = given_epoch(9), done = given_epoch(9);
  Silent sink;
  done.give({.sizes = {1}, .samples = {1}, .last = true}, {});
  done.next();

  waiting.interrupt(Error{Code::kUnavailable, "stopping"});
  done.interrupt(Error{Code::kUnavailable, "stopping"});
  done.ended(sink, BatchId{0}, CompletedBatch{.id = BatchId{0}});

  waiting.say_goodbye(sink);
  CHECK(sink.goodbye == "stopping");
  done.say_goodbye(sink);
  CHECK(sink.goodbye == "ended");
}

}  // namespace
}  // namespace millrace
