// Datasets and epochs as clients ask for them, and the position tokens that resume them.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "daemon/formats/format_table.h"
#include "proto/rpc/position_token.h"
#include "tests/unit/daemon/serve/parse/parse_fixture.h"

using namespace millrace;

namespace {

v1::EpochPosition position_of(const v1::StartEpoch& epoch, std::uint64_t next_batch) {
  v1::EpochPosition position;
  position.set_fingerprint(77);
  position.set_seed(epoch.seed());
  position.set_epoch(epoch.epoch());
  position.set_shuffle(epoch.shuffle());
  position.set_drop_last(epoch.drop_last());
  position.set_batch_size(epoch.batch_size());
  position.set_rank(epoch.rank());
  position.set_world_size(epoch.world_size());
  position.set_shard_tail(epoch.shard_tail());
  position.set_next_batch(next_batch);
  return position;
}

}  // namespace

TEST_CASE("an epoch request arrives in every field", "[serve]") {
  const Tables tables;

  const ClientRequest parsed = tables.parse(good_epoch());

  const auto& epoch = std::get<EpochRequest>(parsed);
  CHECK(epoch.id == EpochStreamId{4});
  CHECK(epoch.dataset->samples() == 3);
  const EpochOrderSpec expected{.samples = 3,
                                .seed = 11,
                                .epoch = 3,
                                .shuffle = Shuffle::kYes,
                                .last_batch = LastBatch::kKeep,
                                .batch_size = 2,
                                .rank = 1,
                                .world_size = 2,
                                .tail = ShardTail::kUneven};
  CHECK(epoch.order == expected);
  CHECK(epoch.first_batch == 0);
}

TEST_CASE("a malformed epoch is refused with the name of its field", "[serve]") {
  const Tables tables;
  struct Bad {
    std::string text;
    std::function<void(v1::StartEpoch&)> spoil;
    Code code = Code::kInvalid;
    std::uint64_t stream = 4;
  };
  const std::vector<Bad> table{
      {"stream_id: must be at least 1", [](auto& e) { e.set_stream_id(0); }, Code::kInvalid, 0},
      {"dataset_id: no dataset 1 is open", [](auto& e) { e.set_dataset_id(1); }, Code::kNotFound},
      {"batch_size: must be at least 1, is 0", [](auto& e) { e.set_batch_size(0); }},
      {"batch_size: must be at most 65536", [](auto& e) { e.set_batch_size(70'000); }},
      {"rank: must be less than world_size (2), is 2", [](auto& e) { e.set_rank(2); }},
      {"rank: must be less than world_size (1), is 1", [](auto& e) { e.clear_world_size(); }},
      {"shard_tail: 4 is not a value", [](auto& e) { e.set_shard_tail(static_cast<v1::ShardTail>(4)); }},
      {"window_blocks: must be set together with block_samples", [](auto& e) { e.set_block_samples(8); }},
      {"window_blocks: must be set together with block_samples", [](auto& e) { e.set_window_blocks(8); }},
      {"block_samples: must be set together with shuffle",
       [](auto& e) {
         e.set_shuffle(false);
         e.set_block_samples(8);
         e.set_window_blocks(2);
       }},
      {"on_error: 9 is not a value", [](auto& e) { e.set_on_error(static_cast<v1::OnError>(9)); }},
      {"fidelity: 9 is not a value", [](auto& e) { e.set_fidelity(static_cast<v1::Fidelity>(9)); }},
      {"priority: 9 is not a value", [](auto& e) { e.set_priority(static_cast<v1::Priority>(9)); }},
      {"backend: is not a backend's name", [](auto& e) { e.set_backend("CPU"); }},
      {"backend: is not a backend's name", [](auto& e) { e.set_backend("\xff"); }},
      {"position: not a position token", [](auto& e) { e.set_position("nonsense"); }},
      {"position: not a position token", [](auto& e) { e.set_position(std::string(1'000, 'x')); }},
  };

  for (const Bad& bad : table) {
    v1::ClientMessage message = good_epoch();
    bad.spoil(*message.mutable_start_epoch());

    check_refused(tables.parse(message), bad.text, bad.code, EpochStreamId{bad.stream});
  }
}

TEST_CASE("an epoch without on_error gets the default of its order, under the guard", "[serve]") {
  const Tables tables;
  v1::ClientMessage shuffled = good_epoch(), in_order = good_epoch();
  shuffled.mutable_start_epoch()->set_shuffle(true);
  in_order.mutable_start_epoch()->set_shuffle(false);

  const auto first = std::get<EpochRequest>(tables.parse(shuffled));
  const auto second = std::get<EpochRequest>(tables.parse(in_order));

  CHECK(first.on_error == OnError::kSubstitute);
  CHECK(first.guard == Guard::kOn);
  CHECK(second.on_error == OnError::kSkip);
  CHECK(second.guard == Guard::kOn);
}

TEST_CASE("an on_error that is set is what it says, without the guard; a batch has none either", "[serve]") {
  const Tables tables;
  const std::vector<std::pair<v1::OnError, OnError>> table{{v1::ON_ERROR_FAIL, OnError::kFail},
                                                           {v1::ON_ERROR_SKIP, OnError::kSkip},
                                                           {v1::ON_ERROR_ZERO, OnError::kZero},
                                                           {v1::ON_ERROR_SUBSTITUTE, OnError::kSubstitute}};
  for (const auto& [set, expected] : table) {
    v1::ClientMessage message = good_epoch();
    message.mutable_start_epoch()->set_on_error(set);

    const auto epoch = std::get<EpochRequest>(tables.parse(message));

    CHECK(epoch.on_error == expected);
    CHECK(epoch.guard == Guard::kOff);
  }
  const auto batch = std::get<BatchRequest>(tables.parse(good_submit()));
  CHECK(batch.on_error == OnError::kFail);
  CHECK(batch.guard == Guard::kOff);
}

TEST_CASE("a position token resumes the epoch that it was taken from", "[serve]") {
  const Tables tables;
  v1::ClientMessage message = good_epoch();
  message.mutable_start_epoch()->set_position(encode_position(position_of(message.start_epoch(), 17)));

  const ClientRequest parsed = tables.parse(message);

  CHECK(std::get<EpochRequest>(parsed).first_batch == 17);
}

TEST_CASE("a position token of another epoch is refused, saying what differs", "[serve]") {
  const Tables tables;
  const std::vector<std::pair<std::string, std::function<void(v1::EpochPosition&)>>> table{
      {"position: was taken on another dataset", [](auto& p) { p.set_fingerprint(78); }},
      {"position: was taken with seed 12, this epoch has 11", [](auto& p) { p.set_seed(12); }},
      {"position: was taken with epoch 2, this epoch has 3", [](auto& p) { p.set_epoch(2); }},
      {"position: was taken with shuffle 0, this epoch has 1", [](auto& p) { p.set_shuffle(false); }},
      {"position: was taken with drop_last 1, this epoch has 0", [](auto& p) { p.set_drop_last(true); }},
      {"position: was taken with batch_size 3, this epoch has 2", [](auto& p) { p.set_batch_size(3); }},
      {"position: was taken with rank 0, this epoch has 1", [](auto& p) { p.set_rank(0); }},
      {"position: was taken with world_size 4, this epoch has 2", [](auto& p) { p.set_world_size(4); }},
      {"position: was taken with shard_tail 1, this epoch has 3", [](auto& p) { p.set_shard_tail(1); }},
      {"position: was taken with block_samples 8, this epoch has 0", [](auto& p) { p.set_block_samples(8); }},
      {"position: was taken with window_blocks 2, this epoch has 0", [](auto& p) { p.set_window_blocks(2); }},
  };

  for (const auto& [text, change] : table) {
    v1::ClientMessage message = good_epoch();
    v1::EpochPosition position = position_of(message.start_epoch(), 17);
    change(position);
    message.mutable_start_epoch()->set_position(encode_position(position));

    check_refused(tables.parse(message), text, Code::kPrecondition, EpochStreamId{4});
  }
}

TEST_CASE("a damaged position token is refused, or means the same as before", "[serve]") {
  const Tables tables;
  v1::ClientMessage message = good_epoch();
  const std::string token = encode_position(position_of(message.start_epoch(), 17));

  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string damaged = token;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    message.mutable_start_epoch()->set_position(damaged);

    const ClientRequest parsed = tables.parse(message);
    const auto* epoch = std::get_if<EpochRequest>(&parsed);  // a `true` that is another non-zero byte is still true
    CHECK((epoch == nullptr || epoch->first_batch == 17));
  }
}

TEST_CASE("opening a dataset needs an id, an absolute path and plain extensions", "[serve]") {
  const Tables tables;
  v1::ClientMessage good;
  good.mutable_open_dataset()->set_dataset_id(1);
  good.mutable_open_dataset()->set_path("/data/train");
  good.mutable_open_dataset()->add_extensions("jpg");
  const auto spoilt = [&](auto spoil) {
    v1::ClientMessage message = good;
    spoil(*message.mutable_open_dataset());
    return tables.parse(message);
  };

  CHECK(std::get<OpenDatasetRequest>(tables.parse(good)).path == "/data/train");
  CHECK(std::get<OpenDatasetRequest>(spoilt([](auto& d) { d.set_path("/data/\xff"); })).path == "/data/\xff");
  check_refused(spoilt([](auto& d) { d.set_path(std::string("/data\0", 6)); }), "path: must not contain a zero byte",
                Code::kInvalid, DatasetId{1});
  check_refused(spoilt([](auto& d) { d.add_extensions("j\xff"); }), "extensions[1]: must be 1 to 16 lower-case",
                Code::kInvalid, DatasetId{1});
  check_refused(spoilt([](auto& d) { d.set_dataset_id(0); }), "dataset_id: must be at least 1", Code::kInvalid,
                DatasetId{0});
  check_refused(spoilt([](auto& d) { d.set_path("train"); }), "path: must be absolute, beginning with /, is \"train\"",
                Code::kInvalid, DatasetId{1});
  check_refused(spoilt([](auto& d) { d.add_extensions(".jpg"); }), "extensions[1]: must be 1 to 16 lower-case",
                Code::kInvalid, DatasetId{1});
  check_refused(spoilt([](auto& d) { d.add_extensions(""); }), "extensions[1]: must be", Code::kInvalid, DatasetId{1});
  check_refused(spoilt([](auto& d) {
                  for (int i = 0; i < 64; ++i) d.add_extensions("png");
                }),
                "extensions: must be at most 64, are 65", Code::kInvalid, DatasetId{1});
}

TEST_CASE("pictures are what the daemon decodes, unless extensions say which", "[serve]") {
  const Tables tables;
  v1::ClientMessage message;
  v1::OpenDataset& open = *message.mutable_open_dataset();
  open.set_dataset_id(1);
  open.set_path("/data/train");
  const auto choice = [&] { return std::get<OpenDatasetRequest>(tables.parse(message)).choice; };

  CHECK(choice().extensions.empty());
  CHECK(choice().unclassified == Unclassified::kListed);
  open.set_pictures(true);
  open.set_skip_unclassified(true);
  CHECK(choice().extensions == std::vector<std::string>(kPictureExtensions.begin(), kPictureExtensions.end()));
  CHECK(choice().unclassified == Unclassified::kSkipped);
  open.set_pictures(false);
  open.add_extensions("tif");
  CHECK(choice().extensions == std::vector<std::string>{"tif"});
  open.set_pictures(true);
  check_refused(tables.parse(message), "pictures: must not be set together with extensions", Code::kInvalid,
                DatasetId{1});
}

TEST_CASE("a dataset's id is free again when it was closed and its listing has ended", "[serve]") {
  Ledger ledger(budgets_of({.datasets = 2}));
  DatasetTable table(ledger.account({UserId{1000}, SessionId{1}}));
  REQUIRE(table.reserve(DatasetId{1}));

  CHECK_FALSE(table.reserve(DatasetId{1}));
  CHECK(table.close(DatasetId{1}) == DatasetTable::Closed::kWhileListed);
  CHECK(table.close(DatasetId{1}) == DatasetTable::Closed::kUnknown);
  CHECK_FALSE(table.reserve(DatasetId{1}));
  CHECK_FALSE(table.fill(DatasetId{1}, three_samples()));
  CHECK_FALSE(table.find(DatasetId{1}));
  CHECK(table.reserve(DatasetId{1}));
  CHECK(table.fill(DatasetId{1}, three_samples()));
  CHECK(table.find(DatasetId{1}));
  CHECK(table.close(DatasetId{1}) == DatasetTable::Closed::kOpen);
}

TEST_CASE("a session's datasets are bounded, those being listed included", "[serve]") {
  Ledger ledger(budgets_of({.datasets = 2}));
  DatasetTable table(ledger.account({UserId{1000}, SessionId{1}}));
  REQUIRE(table.reserve(DatasetId{1}));
  REQUIRE(table.reserve(DatasetId{2}));

  const Result<void> third = table.reserve(DatasetId{3});

  REQUIRE_FALSE(third);
  CHECK(third.error().code == Code::kExhausted);
  CHECK_THAT(third.error().message, Catch::Contains("limits.datasets"));
  CHECK(table.drop(DatasetId{1}));
  CHECK(table.reserve(DatasetId{3}));
}
