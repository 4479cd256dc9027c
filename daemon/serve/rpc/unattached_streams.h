// Streams that have not attached yet: how many may wait, and which one goes when there are too many. Nobody may keep
// others from attaching by opening streams:
//
//   with the ticket of an open hand-off connection     one each; a second one takes the place of the first
//   without                                            kMost in all; a new one takes the place of the oldest
//
// Thread-bound(control).
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>

#include "proto/base/ids.h"

namespace millrace {

class GrpcStream;

class UnattachedStreams {
 public:
  static constexpr std::size_t kMost = 128;

  // `stream` waits from here on. The one that has to go for it, which waits no more; null: none has to.
  GrpcStream* enter(GrpcStream& stream, std::optional<ClientId> whose);
  void leave(GrpcStream& stream);  // it has attached, or ends. Idempotent

 private:
  std::map<ClientId, GrpcStream*> known_;
  std::deque<GrpcStream*> unknown_;  // oldest first
};

}  // namespace millrace
