#include "daemon/serve/rpc/unattached_streams.h"

#include <utility>

namespace millrace {

GrpcStream* UnattachedStreams::enter(GrpcStream& stream, std::optional<ClientId> whose) {
  if (whose) {
    const auto [place, free] = known_.emplace(*whose, &stream);
    return free ? nullptr : std::exchange(place->second, &stream);
  }
  unknown_.push_back(&stream);
  if (unknown_.size() <= kMost) return nullptr;
  GrpcStream* const oldest = unknown_.front();
  unknown_.pop_front();
  return oldest;
}

void UnattachedStreams::leave(GrpcStream& stream) {
  std::erase(unknown_, &stream);
  std::erase_if(known_, [&](const auto& entry) { return entry.second == &stream; });
}

}  // namespace millrace
