#include "client/src/inbox.h"

#include <algorithm>

#include "client/src/tensor_state.h"
#include "client/src/wire/messages.h"
#include "proto/rpc/status_map.h"

namespace millrace {
inline namespace client {

void Inbox::deliver(v1::ServerMessage& message) {
  switch (message.message_case()) {
    case v1::ServerMessage::kCompleted:
      return deliver(*message.mutable_completed());
    case v1::ServerMessage::kFailed:
      return deliver(*message.mutable_failed());
    case v1::ServerMessage::kAttached: {
      MutexLock lock(mutex_);
      session_ = message.attached().session_id();
      return;
    }
    case v1::ServerMessage::kDatasetOpened: {
      MutexLock lock(mutex_);
      const auto at = datasets_.find(message.dataset_opened().dataset_id());
      if (at != datasets_.end()) at->second.answer = std::move(*message.mutable_dataset_opened());
      return;
    }
    case v1::ServerMessage::kDatasetProgress: {
      MutexLock lock(mutex_);
      const auto at = datasets_.find(message.dataset_progress().dataset_id());
      if (at != datasets_.end()) at->second.files = message.dataset_progress().files();
      return;
    }
    case v1::ServerMessage::kEpochStarted: {
      const auto& started = message.epoch_started();
      MutexLock lock(mutex_);
      const auto at = epochs_.find(started.stream_id());
      if (at != epochs_.end())
        at->second.shape = EpochShape{started.batches(), started.first_batch(), started.samples()};
      return;
    }
    case v1::ServerMessage::kEpochEnded: {
      MutexLock lock(mutex_);
      const auto at = epochs_.find(message.epoch_ended().stream_id());
      if (at != epochs_.end()) at->second.ended = true;
      return;
    }
    case v1::ServerMessage::kSampleFiles: {
      MutexLock lock(mutex_);
      const auto at = questions_.find(message.sample_files().question_id());
      if (at != questions_.end()) at->second = std::move(*message.mutable_sample_files());
      return;
    }
    case v1::ServerMessage::kSlotsWithdrawn:
      return holding_->withdraw_to(message.slots_withdrawn().slots());
    case v1::ServerMessage::MESSAGE_NOT_SET:
      return;  // of a later version
  }
}

void Inbox::deliver(v1::Completed& completed) {
  Batch batch{.id = completed.batch_id(),
              .errors = from_message(completed.errors()),
              .bad = completed.bad(),
              .position = std::move(*completed.mutable_position())};
  if (completed.has_handle()) {
    auto view = view_of(completed.handle(), holding_, wire_);
    if (view) {
      batch.tensor = *std::move(view);
    } else {
      batch.failure = std::move(view).error();
    }
  }
  deliver_batch(completed.stream_id(), batch);
}

void Inbox::deliver(v1::Failed& failed) {
  Error error{code_from_name(failed.code()), std::move(*failed.mutable_message())};
  switch (failed.subject_case()) {
    case v1::Failed::kBatchId: {
      Batch batch{.id = failed.batch_id(),
                  .errors = from_message(failed.errors()),
                  .bad = failed.bad(),
                  .failure = std::move(error)};
      return deliver_batch(failed.epoch_stream_id(), batch);
    }
    case v1::Failed::kDatasetId: {
      MutexLock lock(mutex_);
      const auto at = datasets_.find(failed.dataset_id());
      if (at != datasets_.end()) at->second.answer = std::move(error);
      return;
    }
    case v1::Failed::kStreamId:
      return fail_epoch(failed.stream_id(), std::move(error));
    case v1::Failed::kQuestionId: {
      MutexLock lock(mutex_);
      const auto at = questions_.find(failed.question_id());
      if (at != questions_.end()) at->second = std::move(error);
      return;
    }
    case v1::Failed::SUBJECT_NOT_SET:
      return;  // about a message that has no answer, such as a late release
  }
}

// Leaves `batch` with the caller, who drops it outside the lock, if nobody waits for it any more.
void Inbox::deliver_batch(std::uint64_t stream, Batch& batch) {
  std::vector<RingRoom> rooms;  // given back outside the lock
  MutexLock lock(mutex_);
  if (stream != 0) {
    const auto at = epochs_.find(stream);
    if (at != epochs_.end()) at->second.batches.push_back(std::move(batch));
    return;
  }
  const auto at = under_way_.find(batch.id);
  if (at == under_way_.end()) return;
  rooms = std::move(at->second);
  under_way_.erase(at);
  done_.push_back(std::move(batch));
}

std::optional<Result<std::uint64_t>> Inbox::attached() {
  MutexLock lock(mutex_);
  if (!session_) return std::nullopt;
  return Result<std::uint64_t>(*session_);
}

void Inbox::expect_batch(std::uint64_t batch, std::vector<RingRoom> rooms) {
  MutexLock lock(mutex_);
  under_way_.emplace(batch, std::move(rooms));
}

void Inbox::forget_batch(std::uint64_t batch) {
  std::vector<RingRoom> rooms;  // given back outside the lock
  MutexLock lock(mutex_);
  const auto at = under_way_.find(batch);
  if (at == under_way_.end()) return;
  rooms = std::move(at->second);
  under_way_.erase(at);
}

std::optional<Result<Batch>> Inbox::take_oldest() {
  MutexLock lock(mutex_);
  if (!done_.empty()) {
    Batch batch = std::move(done_.front());
    done_.pop_front();
    return Result<Batch>(std::move(batch));
  }
  if (!under_way_.empty()) return std::nullopt;
  return Result<Batch>(Error{Code::kPrecondition, "next: no submitted batch is under way; submit one first"});
}

std::optional<Result<Batch>> Inbox::take(std::uint64_t id) {
  MutexLock lock(mutex_);
  const auto at = std::find_if(done_.begin(), done_.end(), [&](const Batch& batch) { return batch.id == id; });
  if (at != done_.end()) {
    Batch batch = std::move(*at);
    done_.erase(at);
    return Result<Batch>(std::move(batch));
  }
  if (under_way_.count(id) != 0) return std::nullopt;
  return Result<Batch>(
      Error{Code::kNotFound, "wait: batch " + std::to_string(id) + " was never submitted here, or was taken already"});
}

void Inbox::expect_epoch(std::uint64_t stream) {
  MutexLock lock(mutex_);
  epochs_.try_emplace(stream);
}

void Inbox::fail_epoch(std::uint64_t stream, Error why) {
  MutexLock lock(mutex_);
  const auto at = epochs_.find(stream);
  if (at != epochs_.end()) at->second.failed = std::move(why);
}

void Inbox::forget_epoch(std::uint64_t stream) {
  EpochState dropped;  // its batches go outside the lock
  MutexLock lock(mutex_);
  const auto at = epochs_.find(stream);
  if (at == epochs_.end()) return;
  dropped = std::move(at->second);
  epochs_.erase(at);
}

std::optional<Result<EpochShape>> Inbox::epoch_shape(std::uint64_t stream) {
  MutexLock lock(mutex_);
  const auto at = epochs_.find(stream);
  if (at == epochs_.end()) return Result<EpochShape>(Error{Code::kCancelled, "the epoch was stopped"});
  const EpochState& epoch = at->second;
  if (epoch.shape) return Result<EpochShape>(*epoch.shape);
  if (epoch.failed) return Result<EpochShape>(*epoch.failed);
  return std::nullopt;
}

std::optional<Result<std::optional<Batch>>> Inbox::take_of_epoch(std::uint64_t stream) {
  using Answer = Result<std::optional<Batch>>;
  MutexLock lock(mutex_);
  const auto at = epochs_.find(stream);
  if (at == epochs_.end()) return Answer(std::nullopt);
  EpochState& epoch = at->second;
  if (!epoch.batches.empty()) {
    Batch batch = std::move(epoch.batches.front());
    epoch.batches.pop_front();
    return Answer(std::optional<Batch>(std::move(batch)));
  }
  if (epoch.failed) return Answer(*epoch.failed);
  if (epoch.ended) return Answer(std::nullopt);
  return std::nullopt;
}

void Inbox::expect_dataset(std::uint64_t dataset) {
  MutexLock lock(mutex_);
  datasets_.try_emplace(dataset);
}

void Inbox::forget_dataset(std::uint64_t dataset) {
  MutexLock lock(mutex_);
  datasets_.erase(dataset);
}

std::optional<Result<v1::DatasetOpened>> Inbox::take_dataset(std::uint64_t dataset) {
  MutexLock lock(mutex_);
  const auto at = datasets_.find(dataset);
  if (at == datasets_.end() || !at->second.answer) return std::nullopt;
  auto answer = std::move(at->second.answer);
  datasets_.erase(at);
  return answer;
}

std::uint64_t Inbox::dataset_files(std::uint64_t dataset) {
  MutexLock lock(mutex_);
  const auto at = datasets_.find(dataset);
  return at == datasets_.end() ? 0 : at->second.files;
}

bool Inbox::is_answered(std::uint64_t dataset) {
  MutexLock lock(mutex_);
  const auto at = datasets_.find(dataset);
  return at != datasets_.end() && at->second.answer.has_value();
}

void Inbox::expect_files(std::uint64_t question) {
  MutexLock lock(mutex_);
  questions_.try_emplace(question);
}

void Inbox::forget_files(std::uint64_t question) {
  MutexLock lock(mutex_);
  questions_.erase(question);
}

std::optional<Result<v1::SampleFiles>> Inbox::take_files(std::uint64_t question) {
  MutexLock lock(mutex_);
  const auto at = questions_.find(question);
  if (at == questions_.end() || !at->second) return std::nullopt;
  auto answer = std::move(at->second);
  questions_.erase(at);
  return answer;
}

}  // namespace client
}  // namespace millrace
