// What has been learnt of one user's files: what reading them takes, and how many bytes a task brings. Thread-bound(control).
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/place/cost_ratio.h"
#include "proto/base/bytes.h"

namespace millrace {

class UserReads {
 public:
  CostRatio cost;

  // Of bytes that a task has brought, and that are kept for the lanes.
  void brought(Bytes bytes) {
    bytes_ = std::max(bytes.count, bytes_ - bytes_ / 8);
    known_ = true;
  }

  // Whether one more task of his might bring more than his half of `room`, with `held` of it his and `out` tasks at the
  // fetcher. A user who has neither always may: else a file that is larger than that could never be read.
  bool might_overfill(Bytes room, std::uint64_t held, std::size_t out) const {
    if (held == 0 && out == 0) return false;
    const std::uint64_t each = known_ ? bytes_ : room.count / 4;
    return held + (out + 1) * each > room.count / 2;
  }

 private:
  std::uint64_t bytes_ = 0;  // of a task, of late
  bool known_ = false;
};

}  // namespace millrace
