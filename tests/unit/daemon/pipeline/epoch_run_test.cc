#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/pipeline/epoch/epoch_run.h"

namespace millrace {
namespace {

struct Recorder : BatchSink {
  void ending() override {}
  void completed(const CompletedBatch& batch) override { ids.push_back(raw(batch.id)); }
  void failed(const FailedBatch& batch) override { ids.push_back(1000 + raw(batch.id)); }
  void epoch_started(EpochStreamId, std::uint64_t batches, std::uint64_t first, std::uint64_t) override {
    started = {batches, first};
  }
  void epoch_failed(EpochStreamId, const Error& error) override { goodbye = error.message; }
  void epoch_given_up(EpochStreamId, const Error& error, const SampleFailure& example) override {
    goodbye = example.path + ": " + error.message;
  }
  void epoch_ended(EpochStreamId) override { goodbye = "ended"; }

  std::vector<std::uint64_t> ids;
  std::pair<std::uint64_t, std::uint64_t> started;
  std::string goodbye;
};

std::shared_ptr<const Dataset> dataset_of(std::uint32_t samples) {
  std::string paths(samples, 'a');
  std::vector<Dataset::Entry> entries;
  for (std::uint32_t i = 0; i < samples; ++i) entries.push_back({i, 1, static_cast<std::int32_t>(i % 3)});
  return std::make_shared<Dataset>("/data", std::move(paths), std::move(entries),
                                   std::vector<std::string>{"a", "b", "c"}, 42);
}

EpochRun epoch_of(std::uint32_t samples, std::uint32_t batch_size, std::uint64_t first_batch = 0,
                  Guard guard = Guard::kOff) {
  EpochRequest request{.id = EpochStreamId{5}, .dataset = dataset_of(samples), .recipe = std::make_shared<Recipe>()};
  request.order = EpochOrderSpec{.samples = samples, .batch_size = batch_size};
  request.first_batch = first_batch;
  request.guard = guard;
  EpochOrder order = *EpochOrder::create(request.order);
  return EpochRun(std::move(request), std::move(order));
}

TEST_CASE("an epoch's batches come one after the other, with the dataset's labels", "[pipeline]") {
  EpochRun epoch = epoch_of(5, 2);

  const auto first = epoch.next();
  epoch.next();
  const auto last = epoch.next();

  REQUIRE(first->samples.size() == 2);
  REQUIRE(first->samples[1].label == 1);
  REQUIRE(last->samples.size() == 1);
  REQUIRE(last->id == BatchId{2});
  REQUIRE_FALSE(epoch.next());
}

TEST_CASE("the first sample of each block of parts has its block read ahead", "[pipeline]") {
  const std::uint32_t samples = 22, block = 4;
  const std::shared_ptr<const Dataset> whole = dataset_of(samples);
  const auto parts = std::make_shared<const Dataset>(
      "/data", "a", std::vector<Dataset::Entry>(samples, Dataset::Entry{0, 1, -1}), std::vector<std::string>{}, 42,
      Skipped{}, Dataset::Parts{.ranges = std::vector<Dataset::Range>(samples, {0, Bytes{9}}), .stamps = {}});
  for (const std::shared_ptr<const Dataset>& dataset : {whole, parts}) {
    EpochRequest request{.id = EpochStreamId{5}, .dataset = dataset, .recipe = std::make_shared<Recipe>()};
    request.order = EpochOrderSpec{
        .samples = samples, .shuffle = Shuffle::kYes, .batch_size = 3, .block_samples = block, .window_blocks = 2};
    EpochOrder order = *EpochOrder::create(request.order);
    EpochRun epoch(std::move(request), std::move(order));
    std::set<std::uint64_t> begun;
    while (const auto batch = epoch.next()) {
      for (const SampleRequest& sample : batch->samples) {
        const bool is_first = begun.insert(raw(sample.id) / block).second;
        const std::uint32_t expected = is_first && dataset == parts ? block : 0;
        REQUIRE(std::get<DatasetSource>(sample.source).block_samples == expected);
      }
    }
    REQUIRE(begun.size() == 6);
  }
}

TEST_CASE("an epoch has no next batch while as many as there may be wait to be handed over", "[pipeline]") {
  EpochRun epoch = epoch_of(8, 2);
  Recorder sink;
  REQUIRE(epoch.has_next(2));
  epoch.next();
  epoch.next();

  epoch.ended(sink, BatchId{1}, FailedBatch{.id = BatchId{1}});
  REQUIRE_FALSE(epoch.has_next(2));
  epoch.ended(sink, BatchId{0}, FailedBatch{.id = BatchId{0}});

  REQUIRE(epoch.has_next(2));
}

TEST_CASE("batches that finish out of order are handed over in order", "[pipeline]") {
  EpochRun epoch = epoch_of(6, 2);
  for (int i = 0; i < 3; ++i) epoch.next();
  Recorder sink;

  epoch.ended(sink, BatchId{2}, CompletedBatch{.id = BatchId{2}});
  epoch.ended(sink, BatchId{1}, FailedBatch{.id = BatchId{1}});
  REQUIRE(sink.ids.empty());
  epoch.ended(sink, BatchId{0}, CompletedBatch{.id = BatchId{0}});

  REQUIRE(sink.ids == std::vector<std::uint64_t>{0, 1001, 2});
  REQUIRE(epoch.over());
}

TEST_CASE("a resumed epoch begins where the position says", "[pipeline]") {
  EpochRun epoch = epoch_of(6, 2, 2);
  Recorder sink;

  epoch.announce(sink);
  const auto batch = epoch.next();

  REQUIRE(sink.started == std::pair<std::uint64_t, std::uint64_t>{3, 2});
  REQUIRE(batch->id == BatchId{2});
  REQUIRE(epoch.mark_after(batch->id).next_batch == 3);
  REQUIRE(epoch.mark_after(batch->id).fingerprint == 42);
}

TEST_CASE("a position behind the last batch gives an epoch that is over at once", "[pipeline]") {
  EpochRun epoch = epoch_of(6, 2, 99);

  REQUIRE_FALSE(epoch.next());
  REQUIRE(epoch.over());
}

TEST_CASE("an interrupted epoch says why, a finished one only that it ended", "[pipeline]") {
  EpochRun interrupted = epoch_of(6, 2);
  EpochRun finished = epoch_of(2, 2);
  finished.next();
  Recorder sink;

  interrupted.interrupt(Error{Code::kUnavailable, "stopping"});
  interrupted.say_goodbye(sink);
  REQUIRE(sink.goodbye == "stopping");

  finished.ended(sink, BatchId{0}, CompletedBatch{});
  finished.interrupt(Error{Code::kUnavailable, "stopping"});
  finished.say_goodbye(sink);
  REQUIRE(sink.goodbye == "ended");
}

// Of 500 samples of which the first `bad` are.
CompletedBatch half_a_thousand(std::uint64_t id, std::uint32_t bad) {
  CompletedBatch batch{.id = BatchId{id}, .samples = 500};
  for (std::uint32_t i = 0; i < bad; ++i)
    batch.failures.push_back({.index = i, .path = "/data/" + std::to_string(i), .error = {Code::kInvalid, "broken"}});
  return batch;
}

TEST_CASE("a guarded epoch with too many bad samples begins no batch any more and fails after those under way",
          "[pipeline]") {
  EpochRun epoch = epoch_of(5'000, 500, 0, Guard::kOn);
  for (int i = 0; i < 3; ++i) epoch.next();
  Recorder sink;

  epoch.ended(sink, BatchId{0}, half_a_thousand(0, 40));
  REQUIRE(epoch.next());
  epoch.ended(sink, BatchId{1}, half_a_thousand(1, 40));
  REQUIRE_FALSE(epoch.next());
  epoch.interrupt(Error{Code::kUnavailable, "stopping"});
  REQUIRE_FALSE(epoch.over());
  epoch.ended(sink, BatchId{2}, half_a_thousand(2, 500));
  epoch.ended(sink, BatchId{3}, half_a_thousand(3, 500));
  REQUIRE(epoch.over());
  epoch.say_goodbye(sink);

  REQUIRE(sink.ids == std::vector<std::uint64_t>{0, 1, 2, 3});
  REQUIRE_THAT(sink.goodbye, Catch::StartsWith("/data/0: 80 of the epoch's 1000 samples so far are bad"));
}

TEST_CASE("a guarded epoch whose last batch is one too many fails, too", "[pipeline]") {
  EpochRun epoch = epoch_of(1'000, 500, 0, Guard::kOn);
  for (int i = 0; i < 2; ++i) epoch.next();
  Recorder sink;

  epoch.ended(sink, BatchId{0}, half_a_thousand(0, 0));
  epoch.ended(sink, BatchId{1}, half_a_thousand(1, 51));
  epoch.say_goodbye(sink);

  REQUIRE_THAT(sink.goodbye, Catch::Contains("51 of the epoch's 1000"));
}

TEST_CASE("a batch that failed without a good sample counts, one that failed for another reason does not",
          "[pipeline]") {
  EpochRun epoch = epoch_of(5'000, 500, 0, Guard::kOn);
  for (int i = 0; i < 4; ++i) epoch.next();
  Recorder sink;
  const auto failed = [](const CompletedBatch& batch) {
    return FailedBatch{.id = batch.id, .samples = 500, .error = {Code::kInvalid, "failed"}, .failures = batch.failures};
  };

  epoch.ended(sink, BatchId{0}, failed(half_a_thousand(0, 499)));
  epoch.ended(sink, BatchId{1}, half_a_thousand(1, 0));
  epoch.ended(sink, BatchId{2}, half_a_thousand(2, 0));
  REQUIRE(epoch.next());
  epoch.ended(sink, BatchId{3}, failed(half_a_thousand(3, 500)));

  REQUIRE_FALSE(epoch.next());
}

TEST_CASE("an epoch whose on_error was chosen has no guard", "[pipeline]") {
  EpochRun epoch = epoch_of(5'000, 500);
  for (int i = 0; i < 2; ++i) epoch.next();
  Recorder sink;

  epoch.ended(sink, BatchId{0}, half_a_thousand(0, 500));
  epoch.ended(sink, BatchId{1}, half_a_thousand(1, 500));

  REQUIRE(epoch.next());
}

TEST_CASE("a resumed epoch counts its bad samples anew", "[pipeline]") {
  EpochRun epoch = epoch_of(5'000, 500, 2, Guard::kOn);
  for (int i = 0; i < 2; ++i) epoch.next();
  Recorder sink;

  epoch.ended(sink, BatchId{2}, half_a_thousand(2, 499));

  REQUIRE(epoch.next());
}

}  // namespace
}  // namespace millrace
