// Results as messages: what the pipeline hands over is what a client reads.
#include <catch2/catch.hpp>
#include <string>

#include "daemon/publish/messages.h"
#include "proto/rpc/position_token.h"

using namespace millrace;

namespace {

CompletedBatch completed_batch() {
  CompletedBatch batch{.id = BatchId{12}};
  batch.tensor = SealedTensor{.memory = 1,
                              .slot = SlotIndex{3},
                              .generation = Generation{8},
                              .offset = 4'096,
                              .bytes = Bytes{600},
                              .shape = {2, 3, 10, 10},
                              .strides = {300, 100, 10, 1},
                              .dtype = DType::kFloat16,
                              .records_offset = 4'736,
                              .samples = 2,
                              .sealed_at_ns = 123'456};
  return batch;
}

SampleFailure failure(std::uint32_t index, std::string source = "/data/bad.jpg") {
  return SampleFailure{.index = index,
                       .id = SampleId{index + 100},
                       .source = std::move(source),
                       .error = Error{Code::kInvalid, "truncated"}};
}

}  // namespace

TEST_CASE("a completed batch's message holds the handle and the bad samples", "[publish]") {
  CompletedBatch batch = completed_batch();
  batch.failures.push_back(failure(1));

  const v1::ServerMessage message = completed_message(batch);

  const v1::Completed& completed = message.completed();
  CHECK(completed.batch_id() == 12);
  CHECK(completed.stream_id() == 0);
  CHECK(completed.position().empty());
  CHECK(completed.handle().segment() == 1);
  CHECK(completed.handle().slot() == 3);
  CHECK(completed.handle().generation() == 8);
  CHECK(completed.handle().offset() == 4'096);
  CHECK(completed.handle().bytes() == 600);
  CHECK(std::vector<std::uint64_t>(completed.handle().shape().begin(), completed.handle().shape().end()) ==
        batch.tensor->shape);
  CHECK(std::vector<std::uint64_t>(completed.handle().strides().begin(), completed.handle().strides().end()) ==
        batch.tensor->strides);
  CHECK(completed.handle().dtype() == v1::DTYPE_FLOAT16);
  CHECK(completed.handle().records_offset() == 4'736);
  CHECK(completed.handle().samples() == 2);
  CHECK(completed.handle().sealed_at_ns() == 123'456);
  REQUIRE(completed.errors_size() == 1);
  CHECK(completed.errors(0).index() == 1);
  CHECK(completed.errors(0).sample_id() == 101);
  CHECK(completed.errors(0).source() == "/data/bad.jpg");
  CHECK(completed.errors(0).code() == "INVALID_ARGUMENT");
  CHECK(completed.errors(0).message() == "truncated");
}

TEST_CASE("a batch without a tensor has no handle", "[publish]") {
  const v1::ServerMessage message = completed_message(CompletedBatch{.id = BatchId{1}});

  CHECK_FALSE(message.completed().has_handle());
}

TEST_CASE("an epoch's batch carries the position after it", "[publish]") {
  CompletedBatch batch = completed_batch();
  batch.epoch = EpochMark{.stream = EpochStreamId{5},
                          .order = {.samples = 10,
                                    .seed = 1,
                                    .epoch = 2,
                                    .shuffle = Shuffle::kYes,
                                    .last_batch = LastBatch::kDrop,
                                    .batch_size = 4,
                                    .rank = 1,
                                    .world_size = 3,
                                    .tail = ShardTail::kUneven},
                          .fingerprint = 99,
                          .next_batch = 13};

  const v1::ServerMessage message = completed_message(batch);

  CHECK(message.completed().stream_id() == 5);
  const Result<v1::EpochPosition> position = decode_position(message.completed().position());
  REQUIRE(position);
  CHECK(position->fingerprint() == 99);
  CHECK(position->seed() == 1);
  CHECK(position->epoch() == 2);
  CHECK(position->shuffle());
  CHECK(position->drop_last());
  CHECK(position->batch_size() == 4);
  CHECK(position->rank() == 1);
  CHECK(position->world_size() == 3);
  CHECK(position->shard_tail() == v1::SHARD_TAIL_UNEVEN);
  CHECK(position->next_batch() == 13);
}

TEST_CASE("a failed batch says why, and of which epoch it is", "[publish]") {
  FailedBatch batch{.id = BatchId{4},
                    .error = {Code::kDeadline, "the deadline passed"},
                    .failures = {failure(0)},
                    .stream = EpochStreamId{6}};

  const v1::ServerMessage message = failed_message(batch);

  CHECK(message.failed().subject_case() == v1::Failed::kBatchId);
  CHECK(message.failed().batch_id() == 4);
  CHECK(message.failed().epoch_stream_id() == 6);
  CHECK(message.failed().code() == "DEADLINE_EXCEEDED");
  CHECK(message.failed().message() == "the deadline passed");
  CHECK(message.failed().errors_size() == 1);
}

TEST_CASE("a thousand failures are listed and the rest is counted", "[publish]") {
  FailedBatch batch{.id = BatchId{4}};
  for (std::uint32_t i = 0; i < 5'000; ++i) batch.failures.push_back(failure(i));

  const v1::ServerMessage message = failed_message(batch);

  REQUIRE(message.failed().errors_size() == 1'001);
  CHECK(message.failed().errors(1'000).index() == 1'000);
  CHECK_THAT(message.failed().errors(1'000).message(), Catch::Contains("4000 in all"));
  CHECK(message.failed().bad() == 5'000);
  CHECK(completed_message({.failures = batch.failures}).completed().bad() == 5'000);
}

TEST_CASE("failures with long names stay within what a client accepts in one message", "[publish]") {
  FailedBatch batch{.id = BatchId{4}};
  for (std::uint32_t i = 0; i < 1'000; ++i) {
    batch.failures.push_back(failure(i, std::string(4'000, '\x01')));
    batch.failures.back().path = batch.failures.back().source;
  }

  const v1::ServerMessage message = failed_message(batch);

  CHECK(message.ByteSizeLong() < 2'000'000);
  CHECK_THAT(message.failed().errors().rbegin()->message(), Catch::Contains("are not listed"));
}

TEST_CASE("a file name that is not text is text for people, and bytes for programs", "[publish]") {
  CompletedBatch batch = completed_batch();
  batch.failures.push_back(failure(0, "/data/\xff\n\xc3\xa9.jpg"));
  batch.failures[0].path = batch.failures[0].source;

  v1::ServerMessage read;
  REQUIRE(read.ParseFromString(completed_message(batch).SerializeAsString()));

  CHECK(read.completed().errors(0).source() == "/data/\\xff\\x0a\xc3\xa9.jpg");
  CHECK(read.completed().errors(0).path() == "/data/\xff\n\xc3\xa9.jpg");
}

TEST_CASE("an epoch's begin, failure and end name its stream", "[publish]") {
  const EpochStreamId stream{7};

  CHECK(epoch_started_message(stream, 10, 3, 40).epoch_started().stream_id() == 7);
  CHECK(epoch_started_message(stream, 10, 3, 40).epoch_started().batches() == 10);
  CHECK(epoch_started_message(stream, 10, 3, 40).epoch_started().first_batch() == 3);
  CHECK(epoch_started_message(stream, 10, 3, 40).epoch_started().samples() == 40);
  CHECK(epoch_failed_message(stream, Error{Code::kNotFound, "no"}).failed().stream_id() == 7);
  CHECK(epoch_failed_message(stream, Error{Code::kNotFound, "no"}).failed().code() == "NOT_FOUND");
  CHECK(epoch_ended_message(stream).epoch_ended().stream_id() == 7);
  const v1::Failed given_up = epoch_given_up_message(stream, Error{Code::kNotFound, "no"}, failure(3)).failed();
  CHECK(given_up.stream_id() == 7);
  CHECK(given_up.message() == "no");
  REQUIRE(given_up.errors_size() == 1);
  CHECK(given_up.errors(0).index() == 3);
}
