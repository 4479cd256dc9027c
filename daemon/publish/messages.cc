#include "daemon/publish/messages.h"

#include "proto/base/printable.h"
#include "proto/rpc/batch_choices_message.h"
#include "proto/rpc/position_token.h"
#include "proto/rpc/recipe_message.h"

namespace millrace {
namespace {

void write_handle(const SealedTensor& tensor, v1::TensorHandle& handle) {
  handle.set_segment(tensor.memory);
  handle.set_slot(raw(tensor.slot));
  handle.set_generation(raw(tensor.generation));
  handle.set_offset(tensor.offset);
  handle.set_bytes(tensor.bytes.count);
  handle.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  handle.mutable_strides()->Add(tensor.strides.begin(), tensor.strides.end());
  handle.set_dtype(to_message(tensor.dtype));
  handle.set_records_offset(tensor.records_offset);
  handle.set_samples(tensor.samples);
  handle.set_sealed_at_ns(tensor.sealed_at_ns);
  for (const SealedView& view : tensor.views) {
    v1::ViewTensor& out = *handle.add_views();
    out.set_offset(view.offset);
    out.mutable_shape()->Add(view.shape.begin(), view.shape.end());
    out.mutable_strides()->Add(view.strides.begin(), view.strides.end());
  }
}

void write_error(const SampleFailure& failure, v1::SampleError& error) {
  error.set_index(failure.index);
  error.set_sample_id(raw(failure.id));
  error.set_source(printable(failure.source));
  error.set_path(failure.path);
  error.set_code(std::string(code_name(failure.error.code)));
  error.set_message(printable(failure.error.message));
}

template <class Errors>
void write_errors(const std::vector<SampleFailure>& failures, Errors& errors) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (i == kMaxErrors || bytes > kMaxErrorBytes) {
      v1::SampleError& rest = *errors.Add();
      write_error({.index = failures[i].index, .id = failures[i].id, .error = failures[i].error}, rest);
      rest.set_message("this sample and all bad ones after it, " + std::to_string(failures.size() - i) +
                       " in all, are not listed");
      return;
    }
    v1::SampleError& error = *errors.Add();
    write_error(failures[i], error);
    bytes += error.source().size() + error.path().size() + error.message().size();
  }
}

void write_reason(const Error& error, v1::Failed& failed) {
  failed.set_code(std::string(code_name(error.code)));
  failed.set_message(printable(error.message));
}

}  // namespace

v1::ServerMessage completed_message(const CompletedBatch& batch) {
  v1::ServerMessage message;
  v1::Completed& completed = *message.mutable_completed();
  completed.set_batch_id(raw(batch.id));
  if (batch.tensor) write_handle(*batch.tensor, *completed.mutable_handle());
  write_errors(batch.failures, *completed.mutable_errors());
  completed.set_bad(static_cast<std::uint32_t>(batch.failures.size()));
  if (batch.epoch) {
    completed.set_stream_id(raw(batch.epoch->stream));
    if (batch.epoch->order_by == OrderBy::kDaemon) completed.set_position(position_token(*batch.epoch));
  }
  return message;
}

v1::ServerMessage failed_message(const FailedBatch& batch) {
  v1::ServerMessage message;
  v1::Failed& failed = *message.mutable_failed();
  failed.set_batch_id(raw(batch.id));
  if (batch.stream) failed.set_epoch_stream_id(raw(*batch.stream));
  write_reason(batch.error, failed);
  failed.set_slot_bytes(batch.slot_bytes.count);
  write_errors(batch.failures, *failed.mutable_errors());
  failed.set_bad(static_cast<std::uint32_t>(batch.failures.size()));
  return message;
}

v1::ServerMessage epoch_started_message(EpochStreamId stream, std::uint64_t batches, std::uint64_t first_batch,
                                        std::uint64_t samples) {
  v1::ServerMessage message;
  v1::EpochStarted& started = *message.mutable_epoch_started();
  started.set_stream_id(raw(stream));
  started.set_batches(batches);
  started.set_first_batch(first_batch);
  started.set_samples(samples);
  return message;
}

v1::ServerMessage epoch_failed_message(EpochStreamId stream, const Error& error) {
  v1::ServerMessage message;
  v1::Failed& failed = *message.mutable_failed();
  failed.set_stream_id(raw(stream));
  write_reason(error, failed);
  return message;
}

v1::ServerMessage epoch_given_up_message(EpochStreamId stream, const Error& error, const SampleFailure& example) {
  v1::ServerMessage message = epoch_failed_message(stream, error);
  write_error(example, *message.mutable_failed()->add_errors());
  return message;
}

v1::ServerMessage epoch_ended_message(EpochStreamId stream) {
  v1::ServerMessage message;
  message.mutable_epoch_ended()->set_stream_id(raw(stream));
  return message;
}

std::string position_token(const EpochMark& mark) {
  v1::EpochPosition position;
  position.set_fingerprint(mark.fingerprint);
  position.set_seed(mark.order.seed);
  position.set_epoch(mark.order.epoch);
  position.set_shuffle(mark.order.shuffle == Shuffle::kYes);
  position.set_drop_last(mark.order.last_batch == LastBatch::kDrop);
  position.set_batch_size(mark.order.batch_size);
  position.set_rank(mark.order.rank);
  position.set_world_size(mark.order.world_size);
  position.set_shard_tail(static_cast<std::uint32_t>(to_message(mark.order.tail)));
  position.set_next_batch(mark.next_batch);
  position.set_block_samples(mark.order.block_samples);
  position.set_window_blocks(mark.order.window_blocks);
  return encode_position(std::move(position));
}

}  // namespace millrace
