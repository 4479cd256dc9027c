// What a library asks for when a dataset is opened, and what it says of the files that are no samples.
#include <catch2/catch.hpp>
#include <future>

#include "millrace/client.h"
#include "tests/unit/client/scripted_daemon.h"

using namespace std::chrono_literals;
using millrace::Client;
using millrace::Code;
using millrace::Dataset;
using millrace::DatasetOptions;
using millrace::Result;
using millrace::Session;
using millrace::SkipReason;
using millrace::test::ScriptedDaemon;
namespace v1 = millrace::v1;

namespace {

using Strings = std::vector<std::string>;

struct Fixture {
  ScriptedDaemon daemon;
  Session session = open();

  Session open() const {
    auto client = Client::connect(daemon.socket());
    REQUIRE(client);
    auto made = client->open_session({.slot_bytes = millrace::Bytes{64 * 1024}, .timeout = 30s});
    REQUIRE(made);
    return *std::move(made);
  }
  // What the daemon is asked for; `answer` is what it says.
  v1::OpenDataset asked(DatasetOptions options, v1::ServerMessage answer = {}) {
    options.timeout = 30s;
    auto opening = std::async(std::launch::async, [&] { return session.open_dataset("/data", options); });
    v1::OpenDataset asked = daemon.next_message().open_dataset();
    answer.mutable_dataset_opened()->set_dataset_id(asked.dataset_id());
    daemon.send(answer);
    opened = std::make_unique<Result<Dataset>>(opening.get());
    REQUIRE(*opened);
    return asked;
  }

  std::unique_ptr<Result<Dataset>> opened;
};

Strings extensions_of(const v1::OpenDataset& asked) {
  return {asked.extensions().begin(), asked.extensions().end()};
}

}  // namespace

TEST_CASE("unless told otherwise a dataset is the pictures in class folders", "[client]") {
  Fixture fixture;

  const v1::OpenDataset asked = fixture.asked({});

  CHECK(asked.pictures());
  CHECK(asked.skip_unclassified());
  CHECK(asked.extensions().empty());
}

TEST_CASE("extensions are taken in any case, with or without the dot, and * is every file", "[client]") {
  Fixture fixture;

  const v1::OpenDataset some = fixture.asked({.extensions = {"JPG", ".Jpeg", "png"}, .unclassified = true});
  const v1::OpenDataset all = fixture.asked({.extensions = {"*"}});
  const auto both = fixture.session.open_dataset("/data", {.extensions = {"jpg", "*"}});

  CHECK(extensions_of(some) == Strings{"jpg", "jpeg", "png"});
  CHECK_FALSE(some.pictures());
  CHECK_FALSE(some.skip_unclassified());
  CHECK(all.extensions().empty());
  CHECK_FALSE(all.pictures());
  CHECK(both.error().code == Code::kInvalid);
  CHECK_THAT(both.error().message, Catch::StartsWith("open_dataset: \"*\" means every file"));
}

TEST_CASE("a dataset says what was skipped", "[client]") {
  Fixture fixture;
  v1::ServerMessage answer;
  v1::DatasetOpened& opened = *answer.mutable_dataset_opened();
  opened.set_skipped_files(7);
  v1::SkippedFiles& group = *opened.add_skipped();
  group.set_reason(v1::SKIP_REASON_UNDECODED);
  group.set_extension("bmp");
  group.set_files(6);
  group.add_examples("a/\xff.bmp");
  opened.add_skipped()->set_reason(v1::SKIP_REASON_UNCLASSIFIED);

  fixture.asked({}, answer);

  const Dataset& dataset = **fixture.opened;
  CHECK(dataset.skipped_files() == 7);
  REQUIRE(dataset.skipped().size() == 2);
  CHECK(dataset.skipped()[0].reason == SkipReason::kUndecoded);
  CHECK(dataset.skipped()[0].extension == "bmp");
  CHECK(dataset.skipped()[0].files == 6);
  CHECK(dataset.skipped()[0].examples == Strings{"a/\xff.bmp"});
  CHECK(dataset.skipped()[1].reason == SkipReason::kUnclassified);
}

TEST_CASE("a URL is refused as one, for a dataset and for a sample", "[client]") {
  Fixture fixture;
  const auto message_of = [&](const std::string& path) {
    const auto dataset = fixture.session.open_dataset(path, {.timeout = 1s});
    const auto sample = fixture.session.submit({.samples = {{.source = millrace::Path{path}}}});
    CHECK(dataset.error().code == Code::kInvalid);
    CHECK(sample.error().message == "submit" + dataset.error().message.substr(dataset.error().message.find(':')));
    return dataset.error().message;
  };

  CHECK_THAT(message_of("s3://bucket/train"), Catch::StartsWith("open_dataset: s3://bucket/train is a URL"));
  CHECK_THAT(message_of("https://host/\x1b.jpg"), Catch::StartsWith("open_dataset: https://host/\\x1b.jpg is a URL"));
  CHECK_THAT(message_of("file:///data"), Catch::Contains("is a URL, and the daemon reads none"));
}
