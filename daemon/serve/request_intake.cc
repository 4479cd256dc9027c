#include "daemon/serve/request_intake.h"

#include <utility>

#include "daemon/pipeline/request_room.h"
#include "daemon/serve/parse_message.h"

namespace millrace {
namespace {

constexpr Bytes kKept = 64_KiB;

}  // namespace

TakenIn take_in(v1::ClientMessage& message_untrusted, const Limits& limits, const DatasetTable& datasets,
                Account* account) {
  TakenIn taken{parse_message(message_untrusted, limits, datasets, std::chrono::steady_clock::now()), {}};
  const auto* batch = std::get_if<BatchRequest>(&taken.request);
  if (account == nullptr || batch == nullptr) return taken;
  Result<Charge> room = account->charge(Resource::kRequests, room_for(*batch));
  if (room) {
    taken.room = *std::move(room);
  } else {
    taken.request = RefusedRequest{batch->id, room.error()};
  }
  return taken;
}

void empty_for_next(v1::ClientMessage& message, Bytes bytes) {
  if (bytes <= kKept) {
    message.Clear();
  } else {
    message = v1::ClientMessage();
  }
}

Error no_message() {
  return Error{Code::kInvalid, "what came is no ClientMessage of millrace.v1; see proto/rpc/millrace/v1/session.proto"};
}

}  // namespace millrace
