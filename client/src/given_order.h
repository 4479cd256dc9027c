// The order of one epoch as its owner says it, taken ahead of the batches and sent in pieces. Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "client/src/session_core.h"
#include "millrace/epoch.h"

namespace millrace {
inline namespace client {

class GivenOrder {
 public:
  // `ahead`: batches that the daemon knows of at the least; so many more at the most.
  GivenOrder(NextBatch next, std::uint64_t stream, std::uint32_t ahead)
      : next_(std::move(next)), stream_(stream), ahead_(ahead) {}

  Result<void> top_up(SessionCore& core);  // sends more if the daemon knows of few
  void taken() { --open_; }                // a batch has come, or has failed

 private:
  Result<void> send_some(SessionCore& core);

  NextBatch next_;
  const std::uint64_t stream_;
  const std::uint32_t ahead_;
  std::uint32_t open_ = 0;  // batches that the daemon knows of and that were not taken
  bool ended_ = false;
};

}  // namespace client
}  // namespace millrace
