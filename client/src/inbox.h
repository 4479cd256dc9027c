// What has arrived for a session and was not taken yet, sorted by batch, epoch and dataset. Bounded by the session's
// slots and the batches under way. Thread-safe. Batches are dropped outside the lock, because dropping one sends a
// release.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "client/src/holding.h"
#include "client/src/wire/wire.h"
#include "millrace/batch.h"
#include "millrace/epoch.h"
#include "proto/base/mutex.h"

namespace millrace {
inline namespace client {

class Inbox {
 public:
  Inbox(std::shared_ptr<Holding> holding, std::weak_ptr<Wire> wire)
      : holding_(std::move(holding)), wire_(std::move(wire)) {}

  void deliver(v1::ServerMessage& message);  // Wire's sink

  // The calls that take something out: nullopt as long as it has not come.
  std::optional<Result<std::uint64_t>> attached();  // the session's id

  // A submitted batch is under way; `rooms` stay taken until it has ended.
  void expect_batch(std::uint64_t batch, std::vector<RingRoom> rooms);
  void forget_batch(std::uint64_t batch);  // undoes expect_batch(): the request could not be sent
  std::optional<Result<Batch>> take_oldest();
  std::optional<Result<Batch>> take(std::uint64_t batch);

  void expect_epoch(std::uint64_t stream);
  void fail_epoch(std::uint64_t stream, Error why);
  void forget_epoch(std::uint64_t stream);  // drops its batches, now and later
  std::optional<Result<EpochShape>> epoch_shape(std::uint64_t stream);
  std::optional<Result<std::optional<Batch>>> take_of_epoch(std::uint64_t stream);

  void expect_dataset(std::uint64_t dataset);
  void forget_dataset(std::uint64_t dataset);
  std::optional<Result<v1::DatasetOpened>> take_dataset(std::uint64_t dataset);
  std::uint64_t dataset_files(std::uint64_t dataset);  // seen so far
  bool is_answered(std::uint64_t dataset);             // take_dataset() has something

  void expect_files(std::uint64_t question);
  void forget_files(std::uint64_t question);
  std::optional<Result<v1::SampleFiles>> take_files(std::uint64_t question);

 private:
  struct EpochState {
    std::optional<EpochShape> shape;
    std::deque<Batch> batches;
    std::optional<Error> failed;
    bool ended = false;
  };
  struct DatasetState {
    std::uint64_t files = 0;
    std::optional<Result<v1::DatasetOpened>> answer;
  };

  void deliver(v1::Completed& completed);
  void deliver(v1::Failed& failed);
  void deliver_batch(std::uint64_t stream, Batch& batch);

  const std::shared_ptr<Holding> holding_;  // shared with the views
  const std::weak_ptr<Wire> wire_;
  Mutex mutex_;
  std::optional<std::uint64_t> session_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::vector<RingRoom>> under_way_ MILLRACE_GUARDED_BY(mutex_);
  std::deque<Batch> done_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::uint64_t, EpochState> epochs_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::uint64_t, DatasetState> datasets_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::optional<Result<v1::SampleFiles>>> questions_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace client
}  // namespace millrace
