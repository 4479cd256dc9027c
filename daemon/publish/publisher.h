// Stage 6: a session's results leave for its client, in the order in which the pipeline gives them. Between seal and
// write there is no hop: the control thread calls completed(), and that writes.
//
// A completed batch that there is nobody to tell of (no stream is attached yet, or it has ended) gives its slot back
// here.
//
// Thread-bound(control).
#pragma once

#include <cstdint>

#include "daemon/model/batch_sink.h"
#include "daemon/observe/session_states.h"
#include "daemon/publish/message_port.h"
#include "daemon/slots/slot_pool.h"

namespace millrace {

// What a session has had so far, for statistics. Samples: images in completed batches, the stand-ins of bad ones
// included.
struct PublishedCounts {
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t bad_samples = 0;
  Bytes tensors;
};

class Publisher final : public BatchSink {
 public:
  // `states`: is told of what is handed over; outlives it, as the slots do.
  Publisher(SlotPool& slots, SessionStates& states) : slots_(slots), states_(states) {}

  // `port` is used until detach(). REQUIRES: none attached.
  void attach(MessagePort& port) { port_ = &port; }
  void detach() { port_ = nullptr; }

  // For messages that are not results. Lost where there is nobody to tell.
  void send(v1::ServerMessage message);

  void ending() override;
  void completed(const CompletedBatch& batch) override;
  void failed(const FailedBatch& batch) override;
  void epoch_started(EpochStreamId stream, std::uint64_t batches, std::uint64_t first_batch,
                     std::uint64_t samples) override;
  void epoch_failed(EpochStreamId stream, const Error& error) override;
  void epoch_given_up(EpochStreamId stream, const Error& error, const SampleFailure& example) override;
  void epoch_ended(EpochStreamId stream) override;

  const PublishedCounts& counts() const { return counts_; }

 private:
  SlotPool& slots_;
  SessionStates& states_;
  MessagePort* port_ = nullptr;  // null: no stream, so nobody to tell
  PublishedCounts counts_;
};

}  // namespace millrace
