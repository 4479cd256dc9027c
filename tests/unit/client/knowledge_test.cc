// A library that is newer than its daemon: what the daemon lacks is named before it is asked for.
#include <algorithm>
#include <catch2/catch.hpp>
#include <future>

#include "millrace/client.h"
#include "tests/unit/client/scripted_daemon.h"

using namespace std::chrono_literals;
using millrace::Client;
using millrace::Code;
using millrace::Recipe;
using millrace::Result;
using millrace::Session;
using millrace::test::ScriptedDaemon;
namespace v1 = millrace::v1;

namespace {

v1::Vocabulary without_field(const std::string& message, std::uint32_t number) {
  v1::Vocabulary vocabulary = millrace::own_vocabulary();
  for (auto& fields : *vocabulary.mutable_messages()) {
    auto& numbers = *fields.mutable_numbers();
    if (fields.message() == message) numbers.erase(std::remove(numbers.begin(), numbers.end(), number), numbers.end());
  }
  return vocabulary;
}

v1::Vocabulary without_value(const std::string& enumeration, std::int32_t number) {
  v1::Vocabulary vocabulary = millrace::own_vocabulary();
  for (auto& values : *vocabulary.mutable_enums()) {
    auto& numbers = *values.mutable_numbers();
    if (values.enumeration() == enumeration)
      numbers.erase(std::remove(numbers.begin(), numbers.end(), number), numbers.end());
  }
  return vocabulary;
}

Result<Session> open(const ScriptedDaemon& daemon) {
  auto client = Client::connect(daemon.socket());
  REQUIRE(client);
  return client->open_session({.slot_bytes = millrace::Bytes{64 * 1024}, .timeout = 30s});
}

millrace::BatchRequest one(Recipe recipe) {
  return {.samples = {{.source = millrace::Path{"/data/a.jpg"}}}, .recipe = std::move(recipe)};
}

const Recipe kPatches{.resize = millrace::ExactSize{{28, 28}}, .patches = millrace::Patches{{14, 14}}};
const Recipe kPlain{.resize = millrace::ExactSize{{28, 28}}};

}  // namespace

TEST_CASE("a job is left out where the daemon knows none", "[client]") {
  ScriptedDaemon daemon({.knows_job = false});
  Client client = *Client::connect(daemon.socket());

  const auto session =
      client.open_session({.job = "nightly", .slot_bytes = millrace::Bytes{64 * 1024}, .timeout = 30s});

  REQUIRE(session);
  CHECK(session->id() == 42);
}

TEST_CASE("a recipe's field that the daemon does not know is named, and nothing is asked for", "[client]") {
  ScriptedDaemon daemon({.vocabulary = without_field("Recipe", 12)});
  Session session = *open(daemon);

  const auto refused = session.submit(one(kPatches));
  const auto fine = session.submit(one(kPlain));

  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kUnsupported);
  CHECK(refused.error().message == "millraced 0.0.9 does not know Recipe.patches; update millraced, or do without it");
  REQUIRE(fine);
  CHECK(daemon.next_message().submit().batch_id() == fine->batch);
}

TEST_CASE("a field of a sample, a kind and an enum's value that the daemon does not know are named", "[client]") {
  ScriptedDaemon no_box({.vocabulary = without_field("Sample", 8)});
  ScriptedDaemon no_kind({.vocabulary = without_field("Resize", 3)});
  ScriptedDaemon no_value({.vocabulary = without_value("OnError", 4)});
  millrace::BatchRequest boxed = one({});
  boxed.samples[0].box = millrace::Box{0, 0, 4, 4};
  millrace::BatchRequest substituting = one(kPlain);
  substituting.on_error = millrace::OnError::kSubstitute;

  CHECK_THAT(open(no_box)->submit(boxed).error().message, Catch::Contains("does not know Sample.box;"));
  CHECK_THAT(open(no_kind)->submit(one(kPlain)).error().message, Catch::Contains("does not know Resize.exact;"));
  CHECK_THAT(open(no_value)->submit(substituting).error().message,
             Catch::Contains("does not know the value ON_ERROR_SUBSTITUTE of Submit.on_error;"));
  CHECK(open(no_value)->submit(one(kPlain)));
}

TEST_CASE("a batch that could not be asked for is not under way, and its room in the ring is free", "[client]") {
  ScriptedDaemon daemon({.vocabulary = without_field("Sample", 3)});
  Session session = *open(daemon);
  auto ring = session.open_ring(millrace::Bytes{4096});
  REQUIRE(ring);
  millrace::BatchRequest request = one(kPlain);
  request.samples[0].source = *ring->allocate(4096);

  const auto refused = session.submit(std::move(request));

  CHECK_THAT(refused.error().message, Catch::Contains("does not know Sample.ring;"));
  CHECK(session.next(1s).error().code == Code::kPrecondition);
  CHECK(ring->allocate(4096));
}

TEST_CASE("an epoch and a dataset name what the daemon lacks", "[client]") {
  ScriptedDaemon no_epoch({.vocabulary = without_field("StartEpoch", 11)});
  ScriptedDaemon no_dataset({.vocabulary = without_field("ClientMessage", 5)});
  Session session = *open(no_epoch);
  Session blind = *open(no_dataset);
  auto opening = std::async(std::launch::async, [&] { return session.open_dataset("/data", {.timeout = 30s}); });
  v1::ServerMessage opened;
  opened.mutable_dataset_opened()->set_dataset_id(no_epoch.next_message().open_dataset().dataset_id());
  no_epoch.send(opened);
  const auto dataset = opening.get();
  REQUIRE(dataset);

  millrace::Epoch epoch = session.epoch(*dataset, {.shard_tail = millrace::ShardTail::kDrop});
  const auto next = epoch.next(1s);
  const auto shape = epoch.shape(1s);
  const auto refused = blind.open_dataset("/data", {.timeout = 1s});

  REQUIRE_FALSE(next);
  CHECK(next.error().code == Code::kUnsupported);
  CHECK_THAT(next.error().message, Catch::Contains("does not know StartEpoch.shard_tail;"));
  CHECK_THAT(shape.error().message, Catch::Contains("does not know StartEpoch.shard_tail;"));
  CHECK_THAT(refused.error().message, Catch::Contains("does not know ClientMessage.open_dataset;"));
}

TEST_CASE("a release says how long the program waited, where the daemon knows that field", "[client]") {
  const bool is_older = GENERATE(false, true);
  CAPTURE(is_older);
  ScriptedDaemon daemon({.vocabulary = is_older ? without_field("Release", 3) : millrace::own_vocabulary()});
  Session session = *open(daemon);
  const auto submitted = [&] {
    const auto ticket = session.submit(one(kPlain));
    REQUIRE(ticket);
    REQUIRE(daemon.next_message().has_submit());
    return ticket->batch;
  };
  const auto release_of = [&](millrace::Batch batch) {
    REQUIRE_FALSE(batch.failure);
    batch.tensor.release();
    return daemon.next_message().release();
  };

  const std::uint64_t first = submitted();
  const auto in_vain = session.next(20ms);
  daemon.send(daemon.seal(first, 0, 5, 1, 10));
  const v1::Release waited = release_of(*session.next(30s));
  const std::uint64_t second = submitted();
  daemon.send(daemon.seal(second, 0, 6, 1, 10));
  const v1::Release after = release_of(*session.wait({second}, 30s));

  REQUIRE_FALSE(in_vain);
  CHECK(waited.generation() == 5);
  CHECK(waited.has_waited_ns() == !is_older);
  CHECK(after.has_waited_ns() == !is_older);
  if (!is_older) CHECK(waited.waited_ns() >= 20'000'000);  // the call in vain included
}

TEST_CASE("a daemon that does not say what it knows is too old", "[client]") {
  ScriptedDaemon daemon({.vocabulary = std::nullopt});

  const auto session = open(daemon);

  REQUIRE_FALSE(session);
  CHECK(session.error().code == Code::kPrecondition);
  CHECK_THAT(session.error().message, Catch::Contains("millraced 0.0.9 does not say what it knows"));
}

TEST_CASE("what a library knows is whole and small", "[client]") {
  const v1::Vocabulary own = millrace::own_vocabulary();

  CHECK(millrace::covers(own, own));
  CHECK_FALSE(millrace::covers(without_field("Size", 1), own));
  CHECK_FALSE(millrace::covers(without_value("DType", 4), own));
  CHECK(millrace::covers(own, without_value("DType", 4)));
  CHECK(own.ByteSizeLong() < 2'000);
}
