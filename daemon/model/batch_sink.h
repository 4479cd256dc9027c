// Where a session's results go: stage 6 as the pipeline sees it. Thread-bound(control).
#pragma once

#include "daemon/model/batch_result.h"

namespace millrace {

class BatchSink {
 public:
  virtual ~BatchSink() = default;

  // The last sample of a batch has ended: completed() or failed() follows at once, or after a repair.
  virtual void ending() = 0;
  virtual void completed(const CompletedBatch& batch) = 0;
  virtual void failed(const FailedBatch& batch) = 0;
  virtual void epoch_started(EpochStreamId stream, std::uint64_t batches, std::uint64_t first_batch,
                             std::uint64_t samples) = 0;
  virtual void epoch_failed(EpochStreamId stream,
                            const Error& error) = 0;  // never started, or cannot go on; no epoch_ended follows
  // As epoch_failed(), for bad samples, of which `example` is one.
  virtual void epoch_given_up(EpochStreamId stream, const Error& error, const SampleFailure& example) = 0;
  virtual void epoch_ended(EpochStreamId stream) = 0;
};

}  // namespace millrace
