// Datasets and epochs against a scripted daemon.
#include <catch2/catch.hpp>

#include "millrace/client.h"
#include "tests/unit/client/scripted_daemon.h"

using namespace std::chrono_literals;
using millrace::Batch;
using millrace::Client;
using millrace::Code;
using millrace::Dataset;
using millrace::Epoch;
using millrace::Session;
using millrace::test::ScriptedDaemon;
namespace v1 = millrace::v1;

namespace {

struct EpochFixture {
  explicit EpochFixture(std::uint32_t slots = 4) : session(open(daemon, slots)), dataset(open_dataset()) {}

  static Session open(ScriptedDaemon& daemon, std::uint32_t slots) {
    auto client = Client::connect(daemon.socket());
    REQUIRE(client);
    auto session =
        client->open_session({.slots = slots, .batch = 16, .slot_bytes = millrace::Bytes{64 * 1024}, .timeout = 30s});
    REQUIRE(session);
    return *std::move(session);
  }

  Dataset open_dataset() {
    v1::ServerMessage answer;
    answer.mutable_dataset_opened()->set_dataset_id(1);  // the session's first number
    answer.mutable_dataset_opened()->set_samples(1000);
    answer.mutable_dataset_opened()->add_classes("cat");
    answer.mutable_dataset_opened()->add_classes("dog");
    daemon.send(answer);
    auto opened = session.open_dataset("/data", {.extensions = {"jpg"}, .timeout = 30s});
    REQUIRE(opened);
    REQUIRE(daemon.next_message().open_dataset().extensions(0) == "jpg");
    return *std::move(opened);
  }

  // Begins an epoch; the daemon has its message. Returns its stream.
  Epoch begin(const millrace::EpochOptions& options = {.timeout = 30s}) {
    Epoch epoch = session.epoch(dataset, options);
    start = daemon.next_message().start_epoch();
    return epoch;
  }

  v1::ServerMessage epoch_batch(std::uint64_t number, std::uint32_t slot) {
    auto message = daemon.seal(number, slot, number + 1, 1, 10);
    message.mutable_completed()->set_stream_id(start.stream_id());
    message.mutable_completed()->set_position("after " + std::to_string(number));
    return message;
  }

  v1::ServerMessage ended() {
    v1::ServerMessage message;
    message.mutable_epoch_ended()->set_stream_id(start.stream_id());
    return message;
  }

  ScriptedDaemon daemon;
  Session session;
  Dataset dataset;
  v1::StartEpoch start;
};

}  // namespace

TEST_CASE("an opened dataset has its samples and classes", "[client]") {
  EpochFixture fixture;

  REQUIRE(fixture.dataset.samples() == 1000);
  REQUIRE(fixture.dataset.classes() == std::vector<std::string>{"cat", "dog"});
}

TEST_CASE("an epoch's batch tells how long it was waited for; one that nobody took does not", "[client]") {
  EpochFixture fixture;
  Epoch epoch = fixture.begin();
  fixture.daemon.send(fixture.epoch_batch(0, 0));
  fixture.daemon.send(fixture.epoch_batch(1, 1));
  {
    const auto batch = epoch.next(30s);
    REQUIRE((batch && *batch));
  }
  CHECK(fixture.daemon.next_message().release().has_waited_ns());

  fixture.daemon.send(fixture.epoch_batch(2, 0));
  v1::ServerMessage started;  // comes behind batch 2
  started.mutable_epoch_started()->set_stream_id(fixture.start.stream_id());
  fixture.daemon.send(started);
  REQUIRE(epoch.next(30s));
  CHECK(fixture.daemon.next_message().release().has_waited_ns());
  REQUIRE(epoch.shape(30s));
  epoch.stop();
  const auto last = fixture.daemon.next_message();
  REQUIRE(last.has_release());
  CHECK_FALSE(last.release().has_waited_ns());
}

TEST_CASE("a dataset that the daemon refuses is its error, after its progress", "[client]") {
  EpochFixture fixture;
  v1::ServerMessage progress;
  progress.mutable_dataset_progress()->set_dataset_id(2);
  progress.mutable_dataset_progress()->set_files(123);
  v1::ServerMessage refused;
  refused.mutable_failed()->set_dataset_id(2);
  refused.mutable_failed()->set_code("PERMISSION_DENIED");
  fixture.daemon.send(progress);
  std::vector<std::uint64_t> seen;

  const auto dataset = fixture.session.open_dataset("/secret", {.progress =
                                                                    [&](std::uint64_t files) {
                                                                      seen.push_back(files);
                                                                      fixture.daemon.send(refused);
                                                                    },
                                                                .timeout = 30s});

  REQUIRE(dataset.error().code == Code::kDenied);
  REQUIRE(seen == std::vector<std::uint64_t>{123});
}

TEST_CASE("the end of a dataset closes it in the daemon", "[client]") {
  EpochFixture fixture;

  { Dataset gone = std::move(fixture.dataset); }

  REQUIRE(fixture.daemon.next_message().close_dataset().dataset_id() == 1);
}

TEST_CASE("an epoch's wishes reach the daemon", "[client]") {
  EpochFixture fixture;

  Epoch epoch = fixture.begin({.seed = 3,
                               .epoch = 4,
                               .shuffle = true,
                               .drop_last = true,
                               .rank = 1,
                               .world_size = 2,
                               .shard_tail = millrace::ShardTail::kUneven,
                               .on_error = millrace::OnError::kSubstitute,
                               .position = "token",
                               .batches = 9});

  const auto& start = fixture.start;
  REQUIRE(start.dataset_id() == 1);
  REQUIRE(start.batch_size() == 16);  // the session's
  REQUIRE(start.seed() == 3);
  REQUIRE(start.epoch() == 4);
  REQUIRE(start.shuffle());
  REQUIRE(start.drop_last());
  REQUIRE(start.rank() == 1);
  REQUIRE(start.world_size() == 2);
  REQUIRE(start.shard_tail() == v1::SHARD_TAIL_UNEVEN);
  REQUIRE(start.on_error() == v1::ON_ERROR_SUBSTITUTE);
  REQUIRE(start.position() == "token");
  REQUIRE(start.first_batches() == 9);
  REQUIRE(epoch.position() == "token");
}

TEST_CASE("a loop over an epoch gives its batches in order, moves its position, and ends well", "[client]") {
  EpochFixture fixture;
  Epoch epoch = fixture.begin();
  for (std::uint32_t i = 0; i < 3; ++i) fixture.daemon.send(fixture.epoch_batch(i, i));
  fixture.daemon.send(fixture.ended());
  std::vector<std::uint64_t> numbers;
  std::vector<std::string> positions;

  for (Batch& batch : epoch) {
    numbers.push_back(batch.id);
    positions.push_back(epoch.position());
  }

  REQUIRE(epoch.result());
  REQUIRE(numbers == std::vector<std::uint64_t>{0, 1, 2});
  REQUIRE(positions == std::vector<std::string>{"after 0", "after 1", "after 2"});
}

TEST_CASE("a loop gives its slot back before it waits for the next batch", "[client]") {
  EpochFixture fixture(1);
  Epoch epoch = fixture.begin();
  fixture.daemon.send(fixture.epoch_batch(0, 0));
  auto at = epoch.begin();
  REQUIRE(at->id == 0);

  std::thread daemon([&] {
    if (fixture.daemon.next_message().has_release()) fixture.daemon.send(fixture.epoch_batch(1, 0));
  });
  ++at;
  daemon.join();

  REQUIRE(at != epoch.end());
  REQUIRE(at->id == 1);
}

TEST_CASE("a loop ends at a failed batch with its reason, and next() goes on after it", "[client]") {
  EpochFixture fixture;
  Epoch epoch = fixture.begin();
  v1::ServerMessage failed;
  failed.mutable_failed()->set_batch_id(0);
  failed.mutable_failed()->set_epoch_stream_id(fixture.start.stream_id());
  failed.mutable_failed()->set_code("INVALID_ARGUMENT");
  failed.mutable_failed()->set_message("/data/x.jpg: truncated");
  fixture.daemon.send(failed);
  fixture.daemon.send(fixture.epoch_batch(1, 0));

  int batches = 0;
  for ([[maybe_unused]] Batch& batch : epoch) ++batches;
  const auto after = epoch.next(30s);

  REQUIRE(batches == 0);
  REQUIRE(epoch.result().error().message == "/data/x.jpg: truncated");
  REQUIRE(after);
  REQUIRE((*after)->id == 1);
}

TEST_CASE("an epoch that cannot start says why", "[client]") {
  EpochFixture fixture;
  Epoch epoch = fixture.begin();
  v1::ServerMessage failed;
  failed.mutable_failed()->set_stream_id(fixture.start.stream_id());
  failed.mutable_failed()->set_code("FAILED_PRECONDITION");
  failed.mutable_failed()->set_message("position: of another seed");
  fixture.daemon.send(failed);

  REQUIRE(epoch.shape(30s).error().code == Code::kPrecondition);
  REQUIRE(epoch.next(30s).error().message == "position: of another seed");
}

TEST_CASE("an epoch that is dropped is stopped, and its late batches release their slots", "[client]") {
  EpochFixture fixture;
  { Epoch epoch = fixture.begin(); }
  REQUIRE(fixture.daemon.next_message().stop_epoch().stream_id() == fixture.start.stream_id());

  fixture.daemon.send(fixture.epoch_batch(0, 3));
  const auto nothing = fixture.session.submit({});
  REQUIRE(fixture.session.wait(*nothing, 100ms).error().code == Code::kDeadline);  // pumps

  REQUIRE(fixture.daemon.next_message().has_submit());
  REQUIRE(fixture.daemon.next_message().release().slot() == 3);
}

TEST_CASE("an epoch leaves on_error to the daemon unless it is told", "[client]") {
  EpochFixture fixture;

  Epoch epoch = fixture.begin({.shuffle = true});

  REQUIRE(fixture.start.on_error() == v1::ON_ERROR_UNSPECIFIED);
}

TEST_CASE("an epoch counts the bad images of the batches that came, listed or not, failed ones left out", "[client]") {
  EpochFixture fixture;
  Epoch epoch = fixture.begin();
  v1::ServerMessage listed = fixture.epoch_batch(0, 0), many = fixture.epoch_batch(1, 1), failed;
  listed.mutable_completed()->add_errors();
  listed.mutable_completed()->set_bad(1);
  many.mutable_completed()->add_errors();
  many.mutable_completed()->set_bad(3'000);
  failed.mutable_failed()->set_batch_id(2);
  failed.mutable_failed()->set_epoch_stream_id(fixture.start.stream_id());
  failed.mutable_failed()->add_errors();
  failed.mutable_failed()->set_bad(16);
  for (const v1::ServerMessage& message : {listed, many, failed}) fixture.daemon.send(message);

  std::vector<std::uint64_t> bad;
  for (int i = 0; i < 3; ++i) bad.push_back((*epoch.next(30s))->bad);
  const Epoch moved = std::move(epoch);

  REQUIRE(bad == std::vector<std::uint64_t>{1, 3'000, 16});
  REQUIRE(moved.bad() == 3'001);
}
