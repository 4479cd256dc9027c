// Every message in this file is untrusted.
#include "daemon/serve/parse_message.h"

#include <algorithm>

#include "daemon/serve/field.h"
#include "daemon/serve/parse_batch.h"
#include "daemon/serve/parse_dataset.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr std::size_t kMaxName = 64;
// Keep a segment's size within 64 bits; the budgets are far below.
constexpr std::uint32_t kMaxSlots = 1U << 20U;
constexpr std::uint64_t kMaxSlotBytes = std::uint64_t{1} << 40U;

Result<Ticket> parse_ticket(std::string_view bytes) {
  Ticket ticket{};
  if (bytes.size() != ticket.size()) {
    return field_error("ticket", "must be the " + std::to_string(ticket.size()) +
                                     " bytes that the hand-off socket gave, has " + std::to_string(bytes.size()));
  }
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(ticket.data()));
  return ticket;
}

// The request, or its refusal.
template <class Request>
ClientRequest or_refused(Result<Request> parsed, Subject subject) {
  if (!parsed) return RefusedRequest{subject, std::move(parsed).error()};
  return *std::move(parsed);
}

Result<AttachRequest> parse_attach(const v1::Attach& attach) {
  MILLRACE_TRY_IN("attach", const Ticket ticket, parse_ticket(attach.ticket()));
  return AttachRequest{ticket};
}

}  // namespace

ClientRequest parse_message(v1::ClientMessage& message, const Limits& limits, const DatasetTable& datasets,
                            std::chrono::steady_clock::time_point now) {
  switch (message.message_case()) {
    case v1::ClientMessage::kAttach:
      return or_refused(parse_attach(message.attach()), {});
    case v1::ClientMessage::kSubmit:
      return or_refused(parse_submit(*message.mutable_submit(), limits, datasets, now),
                        BatchId{message.submit().batch_id()});
    case v1::ClientMessage::kCancel:
      return CancelRequest{BatchId{message.cancel().batch_id()}};
    case v1::ClientMessage::kRelease:
      return ReleaseRequest{message.release().slot(), message.release().generation()};
    case v1::ClientMessage::kOpenDataset:
      return or_refused(parse_open_dataset(message.open_dataset(), limits),
                        DatasetId{message.open_dataset().dataset_id()});
    case v1::ClientMessage::kCloseDataset:
      return CloseDatasetRequest{DatasetId{message.close_dataset().dataset_id()}};
    case v1::ClientMessage::kStartEpoch:
      return or_refused(parse_start_epoch(message.start_epoch(), limits, datasets),
                        EpochStreamId{message.start_epoch().stream_id()});
    case v1::ClientMessage::kStopEpoch:
      return StopEpochRequest{EpochStreamId{message.stop_epoch().stream_id()}};
    case v1::ClientMessage::MESSAGE_NOT_SET:
      break;
  }
  return RefusedRequest{{}, field_error("message", "is empty, or of a kind that this daemon does not know")};
}

Result<OpenRequest> parse_open(const v1::OpenSessionRequest& request) {
  OpenRequest parsed{.name = request.name(), .slots = request.slots(), .slot_bytes = Bytes{request.slot_bytes()}};
  MILLRACE_TRY(parsed.ticket, parse_ticket(request.ticket()));
  if (parsed.name.size() > kMaxName)
    return field_error(
        "name", "must have at most " + std::to_string(kMaxName) + " bytes, has " + std::to_string(parsed.name.size()));
  if (printable(parsed.name) != parsed.name) return field_error("name", "must be printable text");
  MILLRACE_TRY_VOID(check_range("slots", request.slots(), 1U, kMaxSlots));
  MILLRACE_TRY_VOID(check_range("slot_bytes", request.slot_bytes(), std::uint64_t{1}, kMaxSlotBytes));
  return parsed;
}

}  // namespace millrace
