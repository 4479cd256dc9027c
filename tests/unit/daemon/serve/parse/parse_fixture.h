// What the tests of the request parsers share: a table with a dataset, good messages to spoil, and what a refusal looks
// like.
#pragma once

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/serve/parse/parse_message.h"

namespace millrace {

inline const auto kNow = std::chrono::steady_clock::time_point(std::chrono::seconds(1'000));

inline std::shared_ptr<const Dataset> three_samples() {
  std::vector<Dataset::Entry> entries{{0, 3, 0}, {3, 3, 1}, {6, 3, 1}};
  return std::make_shared<const Dataset>("/data", "a/1b/1b/2", std::move(entries), std::vector<std::string>{"a", "b"},
                                         77);
}

// Dataset 5 is open, dataset 6 is being listed.
struct Tables {
  Limits limits;
  Ledger ledger{Budgets{}};
  DatasetTable datasets{ledger.account({UserId{1000}, SessionId{1}})};

  Tables() {
    REQUIRE(datasets.reserve(DatasetId{5}));
    REQUIRE(datasets.fill(DatasetId{5}, three_samples()));
    REQUIRE(datasets.reserve(DatasetId{6}));
  }
  ClientRequest parse(v1::ClientMessage message) const { return parse_message(message, limits, datasets, kNow); }
};

inline v1::ClientMessage good_submit() {
  v1::ClientMessage message;
  v1::Submit& submit = *message.mutable_submit();
  submit.set_batch_id(9);
  submit.add_samples()->set_path("/data/a.jpg");
  submit.add_samples()->set_encoded("bytes");
  submit.mutable_samples(1)->set_id(100);
  submit.mutable_samples(1)->set_has_id(true);
  submit.mutable_samples(1)->set_label(-3);
  v1::Sample& ring = *submit.add_samples();
  ring.mutable_ring()->set_offset(64);
  ring.mutable_ring()->set_length(10);
  v1::Sample& listed = *submit.add_samples();
  listed.mutable_dataset()->set_dataset_id(5);
  listed.mutable_dataset()->set_sample_id(2);
  v1::Sample& part = *submit.add_samples();
  part.mutable_part()->set_path("/data/shard.tar");
  part.mutable_part()->set_offset(1'536);
  part.mutable_part()->set_length(48'211);
  submit.mutable_recipe()->mutable_resize()->mutable_exact()->set_width(8);
  submit.mutable_recipe()->mutable_resize()->mutable_exact()->set_height(8);
  return message;
}

inline v1::ClientMessage good_epoch() {
  v1::ClientMessage message;
  v1::StartEpoch& epoch = *message.mutable_start_epoch();
  epoch.set_stream_id(4);
  epoch.set_dataset_id(5);
  epoch.set_batch_size(2);
  epoch.set_seed(11);
  epoch.set_epoch(3);
  epoch.set_shuffle(true);
  epoch.set_world_size(2);
  epoch.set_rank(1);
  epoch.set_shard_tail(v1::SHARD_TAIL_UNEVEN);
  return message;
}

inline v1::ClientMessage good_list() {
  v1::ClientMessage message;
  v1::ListFiles& list = *message.mutable_list_files();
  list.set_dataset_id(9);
  list.set_folder("/data");
  list.set_paths(std::string("a.jpg\0b/c.jpg\0", 14));
  list.add_labels(3);
  list.add_labels(-1);
  list.set_last(true);
  return message;
}

inline v1::ClientMessage good_parts() {
  v1::ClientMessage message;
  v1::ListParts& list = *message.mutable_list_parts();
  list.set_dataset_id(9);
  list.set_folder("/data");
  list.set_paths(std::string("a.tar\0b.tar\0", 12));
  for (const std::uint64_t size : {3'000, 4'000}) list.add_sizes(size);
  for (const std::int64_t time : {-5, 6}) list.add_modified_ns(time);
  for (const std::uint32_t file : {1, 0, 1}) list.add_files(file);
  for (const std::uint64_t offset : {512, 0, 1'024}) list.add_offsets(offset);
  for (const std::uint64_t length : {7, 8, 9}) list.add_lengths(length);
  for (const std::int64_t label : {3, -1, 4}) list.add_labels(label);
  list.set_last(true);
  return message;
}

inline v1::ClientMessage good_order() {
  v1::ClientMessage message;
  v1::GiveBatches& given = *message.mutable_give_batches();
  given.set_stream_id(4);
  given.add_sizes(2);
  given.add_sizes(1);
  for (const std::uint64_t sample : {2, 2, 0}) given.add_samples(sample);
  for (const std::uint64_t draw : {7, 8, 9}) given.add_draws(draw);
  given.set_last(true);
  return message;
}

inline v1::ClientMessage good_question() {
  v1::ClientMessage message;
  message.mutable_name_files()->set_question_id(8);
  message.mutable_name_files()->set_dataset_id(5);
  message.mutable_name_files()->add_samples(2);
  return message;
}

// What is wrong with a request, whether it was refused or says so itself.
inline std::optional<Error> refusal_in(const ClientRequest& parsed) {
  if (const auto* given = std::get_if<GiveBatchesRequest>(&parsed))
    return given->batches ? std::nullopt : std::optional(given->batches.error());
  const auto* refused = std::get_if<RefusedRequest>(&parsed);
  return refused == nullptr ? std::nullopt : std::optional(refused->error);
}

inline void check_refused(const ClientRequest& parsed, const std::string& text, Code code, const Subject& subject) {
  INFO(text);
  const auto* refused = std::get_if<RefusedRequest>(&parsed);
  REQUIRE(refused != nullptr);
  CHECK_THAT(refused->error.message, Catch::StartsWith(text));
  CHECK(refused->error.code == code);
  CHECK(refused->subject == subject);
}

}  // namespace millrace
