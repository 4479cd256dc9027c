// Lists of files, questions about them, and orders, as clients send them.
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/daemon/serve/parse/parse_fixture.h"

using namespace millrace;

namespace {

using namespace std::string_literals;

template <class Spoil>
std::string refusal_of(v1::ClientMessage message, Spoil spoil) {
  spoil(message);
  const std::optional<Error> refused = refusal_in(Tables().parse(std::move(message)));
  return refused ? refused->message : "";
}

}  // namespace

TEST_CASE("a part of a list arrives in every field", "[serve]") {
  const ClientRequest parsed = Tables().parse(good_list());

  const auto& list = std::get<ListFilesRequest>(parsed);
  CHECK(list.id == DatasetId{9});
  CHECK(list.folder == "/data");
  CHECK(list.part.paths_untrusted == "a.jpg\0b/c.jpg\0"s);
  CHECK(list.part.labels == std::vector<std::int64_t>{3, -1});
  CHECK(list.last);
}

TEST_CASE("a malformed part of a list is refused with the name of its field", "[serve]") {
  const auto refusal = [](auto spoil) {
    return refusal_of(good_list(), [&](v1::ClientMessage& message) { spoil(*message.mutable_list_files()); });
  };

  CHECK_THAT(refusal([](auto& l) { l.set_dataset_id(0); }), Catch::Contains("dataset_id: must be at least 1"));
  CHECK_THAT(refusal([](auto& l) { l.set_folder("data"); }), Catch::Contains("folder: must be absolute"));
  CHECK_THAT(refusal([](auto& l) { l.set_paths("a.jpg"); }), Catch::Contains("paths: must have a zero byte"));
  CHECK_THAT(refusal([](auto& l) { l.add_labels(3); }), Catch::Contains("labels: must be as many"));
  CHECK(refusal([](auto& l) { l.clear_labels(); }).empty());
  CHECK(refusal([](auto& l) { l.clear_folder(); }).empty());
}

TEST_CASE("a part of a list of parts arrives in every field", "[serve]") {
  const ClientRequest parsed = Tables().parse(good_parts());

  const auto& list = std::get<ListFilesRequest>(parsed);
  CHECK(list.id == DatasetId{9});
  CHECK(list.folder == "/data");
  CHECK(list.part.paths_untrusted == "a.tar\0b.tar\0"s);
  CHECK(list.part.labels == std::vector<std::int64_t>{3, -1, 4});
  REQUIRE(list.part.ranges_untrusted);
  const RangesInFiles& ranges = *list.part.ranges_untrusted;
  CHECK(ranges.files == std::vector<std::uint32_t>{1, 0, 1});
  CHECK(ranges.offsets == std::vector<std::uint64_t>{512, 0, 1'024});
  CHECK(ranges.lengths == std::vector<std::uint64_t>{7, 8, 9});
  CHECK(ranges.stamps == std::vector<Dataset::Stamp>{{Bytes{3'000}, -5}, {Bytes{4'000}, 6}});
  CHECK(list.last);
}

TEST_CASE("a malformed part of a list of parts is refused with the name of its field", "[serve]") {
  const auto refusal = [](auto spoil) {
    return refusal_of(good_parts(), [&](v1::ClientMessage& message) { spoil(*message.mutable_list_parts()); });
  };

  CHECK_THAT(refusal([](auto& l) { l.set_dataset_id(0); }), Catch::Contains("dataset_id: must be at least 1"));
  CHECK_THAT(refusal([](auto& l) { l.set_folder("data"); }), Catch::Contains("folder: must be absolute"));
  CHECK_THAT(refusal([](auto& l) { l.set_paths("a.tar"); }), Catch::Contains("paths: must have a zero byte"));
  CHECK_THAT(refusal([](auto& l) { l.add_labels(3); }), Catch::Contains("labels: must be as many"));
  CHECK_THAT(refusal([](auto& l) { l.add_files(3); }), Catch::Contains("files: must be as many"));
  CHECK_THAT(refusal([](auto& l) { l.add_offsets(3); }), Catch::Contains("files: must be as many"));
  CHECK_THAT(refusal([](auto& l) { l.add_lengths(3); }), Catch::Contains("files: must be as many"));
  CHECK_THAT(refusal([](auto& l) { l.add_sizes(3); }), Catch::Contains("sizes: must be as many as modified_ns"));
  CHECK_THAT(refusal([](auto& l) { l.set_paths("a.tar\0"s); }), Catch::Contains("sizes: must be as many as paths"));
  CHECK(refusal([](auto& l) { l.clear_labels(); }).empty());
  CHECK(refusal([](auto& l) {
          l.clear_sizes();
          l.clear_modified_ns();
        }).empty());
}

TEST_CASE("a question for files arrives with its dataset, and is refused for samples that there are not", "[serve]") {
  const Tables tables;
  const v1::ClientMessage message = good_question();

  const ClientRequest parsed = tables.parse(message);

  const auto& question = std::get<NameFilesRequest>(parsed);
  CHECK(question.id == QuestionId{8});
  CHECK(question.dataset->samples() == 3);
  CHECK(question.samples == std::vector<SampleId>{SampleId{2}});
  const auto spoiled = [&](auto spoil) {
    return refusal_of(message, [&](v1::ClientMessage& bad) { spoil(*bad.mutable_name_files()); });
  };
  CHECK_THAT(spoiled([](auto& n) { n.add_samples(3); }), Catch::Contains("there is no sample 3"));
  CHECK_THAT(spoiled([](auto& n) { n.set_dataset_id(6); }), Catch::Contains("no dataset 6"));
  CHECK_THAT(spoiled([](auto& n) { n.set_question_id(0); }), Catch::Contains("question_id"));
  CHECK_THAT(spoiled([](auto& n) {
               for (int i = 0; i < 300; ++i) n.add_samples(0);
             }),
             Catch::Contains("at most 256"));
}

TEST_CASE("given batches arrive in every field, and what is wrong with them goes with their epoch", "[serve]") {
  const ClientRequest parsed = Tables().parse(good_order());

  const auto& given = std::get<GiveBatchesRequest>(parsed);
  REQUIRE(given.batches.has_value());
  CHECK(given.id == EpochStreamId{4});
  CHECK(given.batches->sizes == std::vector<std::uint32_t>{2, 1});
  CHECK(given.batches->samples == std::vector<std::uint64_t>{2, 2, 0});
  CHECK(given.batches->draws == std::vector<std::uint64_t>{7, 8, 9});
  CHECK(given.batches->last);
  const auto refusal = [](auto spoil) {
    return refusal_of(good_order(), [&](v1::ClientMessage& bad) { spoil(*bad.mutable_give_batches()); });
  };
  CHECK_THAT(refusal([](auto& g) { g.set_sizes(0, 0); }), Catch::Contains("sizes: must be at least 1"));
  CHECK_THAT(refusal([](auto& g) { g.add_samples(1); }), Catch::Contains("samples: must be as many as sizes say, 3"));
  CHECK_THAT(refusal([](auto& g) { g.set_sizes(0, ~0U); }), Catch::Contains("samples: must be as many"));
  CHECK_THAT(refusal([](auto& g) { g.add_draws(1); }), Catch::Contains("draws: must be as many"));
  CHECK_THAT(refusal([](auto& g) {
               g.Clear();
               g.set_stream_id(4);
             }),
             Catch::Contains("sizes: must have one"));
}

TEST_CASE("an epoch whose order is given takes nothing that says an order", "[serve]") {
  const auto refusal = [](auto spoil) {
    v1::ClientMessage message = good_epoch();
    v1::StartEpoch& epoch = *message.mutable_start_epoch();
    epoch.set_given(true);
    for (auto clear : {&v1::StartEpoch::clear_shuffle, &v1::StartEpoch::clear_rank, &v1::StartEpoch::clear_world_size,
                       &v1::StartEpoch::clear_shard_tail})
      (epoch.*clear)();
    return refusal_of(message, [&](v1::ClientMessage& bad) { spoil(*bad.mutable_start_epoch()); });
  };

  CHECK(refusal([](auto&) {}).empty());
  CHECK_THAT(refusal([](auto& e) { e.set_shuffle(true); }), Catch::Contains("shuffle: must not be set together"));
  CHECK_THAT(refusal([](auto& e) { e.set_drop_last(true); }), Catch::Contains("drop_last"));
  CHECK_THAT(refusal([](auto& e) { e.set_world_size(1); }), Catch::Contains("world_size"));
  CHECK_THAT(refusal([](auto& e) { e.set_shard_tail(v1::SHARD_TAIL_PAD); }), Catch::Contains("shard_tail"));
  CHECK_THAT(refusal([](auto& e) { e.set_position("x"); }), Catch::Contains("position"));
  CHECK_THAT(refusal([](auto& e) { e.set_first_batches(1); }), Catch::Contains("first_batches"));
}
