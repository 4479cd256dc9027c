// Every message in this file is untrusted.
#include "daemon/serve/parse/parse_message.h"

#include <algorithm>

#include "daemon/serve/parse/parse_batch.h"
#include "daemon/serve/parse/parse_dataset.h"
#include "proto/base/printable.h"
#include "proto/rpc/batch_choices_message.h"
#include "proto/rpc/field.h"
#include "proto/rpc/recipe_message.h"

namespace millrace {
namespace {

constexpr std::size_t kMaxName = 64;
// Keep a segment's size within 64 bits; the budgets are far below.
constexpr std::uint32_t kMaxSlots = 1U << 20U;
constexpr std::uint64_t kMaxSlotBytes = std::uint64_t{1} << 40U;

// What a refusal of it is about.
Subject subject_of(const v1::ClientMessage& message) {
  switch (message.message_case()) {
    case v1::ClientMessage::kSubmit:
      return BatchId{message.submit().batch_id()};
    case v1::ClientMessage::kCancel:
      return BatchId{message.cancel().batch_id()};
    case v1::ClientMessage::kOpenDataset:
      return DatasetId{message.open_dataset().dataset_id()};
    case v1::ClientMessage::kCloseDataset:
      return DatasetId{message.close_dataset().dataset_id()};
    case v1::ClientMessage::kListFiles:
      return DatasetId{message.list_files().dataset_id()};
    case v1::ClientMessage::kListParts:
      return DatasetId{message.list_parts().dataset_id()};
    case v1::ClientMessage::kNameFiles:
      return QuestionId{message.name_files().question_id()};
    case v1::ClientMessage::kStartEpoch:
      return EpochStreamId{message.start_epoch().stream_id()};
    case v1::ClientMessage::kGiveBatches:
      return EpochStreamId{message.give_batches().stream_id()};
    case v1::ClientMessage::kStopEpoch:
      return EpochStreamId{message.stop_epoch().stream_id()};
    case v1::ClientMessage::kAttach:
    case v1::ClientMessage::kRelease:
    case v1::ClientMessage::MESSAGE_NOT_SET:
      return {};
  }
  return {};
}

// The request, or its refusal.
template <class Request>
ClientRequest or_refused(Result<Request> parsed, Subject subject) {
  if (!parsed) return RefusedRequest{subject, std::move(parsed).error()};
  return *std::move(parsed);
}

Result<CancelRequest> parse_cancel(const v1::Cancel& cancel) {
  if (has_unknown_fields(cancel)) return unknown_field(cancel);
  return CancelRequest{BatchId{cancel.batch_id()}};
}

Result<ReleaseRequest> parse_release(const v1::Release& release) {
  if (has_unknown_fields(release)) return unknown_field(release);
  ReleaseRequest request{release.slot(), release.generation()};
  if (release.has_waited_ns()) request.waited_ns_untrusted = release.waited_ns();
  return request;
}

Result<CloseDatasetRequest> parse_close_dataset(const v1::CloseDataset& close) {
  if (has_unknown_fields(close)) return unknown_field(close);
  return CloseDatasetRequest{DatasetId{close.dataset_id()}};
}

Result<StopEpochRequest> parse_stop_epoch(const v1::StopEpoch& stop) {
  if (has_unknown_fields(stop)) return unknown_field(stop);
  return StopEpochRequest{EpochStreamId{stop.stream_id()}};
}

// Of a name that is shown to people.
Result<void> check_name(std::string_view field, const std::string& name_untrusted) {
  if (name_untrusted.size() > kMaxName)
    return field_error(field, "must have at most " + std::to_string(kMaxName) + " bytes, has " +
                                  std::to_string(name_untrusted.size()));
  if (printable(name_untrusted) != name_untrusted) return field_error(field, "must be printable text");
  return {};
}

}  // namespace

Result<Ticket> parse_ticket(std::string_view bytes) {
  Ticket ticket{};
  if (bytes.size() != ticket.size()) {
    return field_error("ticket", "must be the " + std::to_string(ticket.size()) +
                                     " bytes that the hand-off socket gave, has " + std::to_string(bytes.size()));
  }
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(ticket.data()));
  return ticket;
}

Result<Ticket> parse_attach(const v1::ClientMessage& message) {
  if (has_unknown_fields(message)) return unknown_field(message);
  if (!message.has_attach()) return Error{Code::kPrecondition, "the first message of a stream must be Attach"};
  if (has_unknown_fields(message.attach())) return unknown_field(message.attach());
  MILLRACE_TRY_IN("attach", const Ticket ticket, parse_ticket(message.attach().ticket()));
  return ticket;
}

ClientRequest parse_message(v1::ClientMessage& message, const Limits& limits, const DatasetTable& datasets,
                            std::chrono::steady_clock::time_point now) {
  const Subject subject = subject_of(message);
  if (has_unknown_fields(message)) return RefusedRequest{subject, unknown_field(message)};
  switch (message.message_case()) {
    case v1::ClientMessage::kAttach:
      return RefusedRequest{subject, Error{Code::kInvalid, "attach: is the stream's message, and has been sent"}};
    case v1::ClientMessage::kSubmit:
      return or_refused(parse_submit(*message.mutable_submit(), limits, datasets, now), subject);
    case v1::ClientMessage::kCancel:
      return or_refused(parse_cancel(message.cancel()), subject);
    case v1::ClientMessage::kRelease:
      return or_refused(parse_release(message.release()), subject);
    case v1::ClientMessage::kOpenDataset:
      return or_refused(parse_open_dataset(message.open_dataset(), limits), subject);
    case v1::ClientMessage::kCloseDataset:
      return or_refused(parse_close_dataset(message.close_dataset()), subject);
    case v1::ClientMessage::kStartEpoch:
      return or_refused(parse_start_epoch(message.start_epoch(), limits, datasets), subject);
    case v1::ClientMessage::kListFiles:
      return or_refused(parse_list_files(*message.mutable_list_files(), limits), subject);
    case v1::ClientMessage::kListParts:
      return or_refused(parse_list_parts(*message.mutable_list_parts(), limits), subject);
    case v1::ClientMessage::kNameFiles:
      return or_refused(parse_name_files(message.name_files(), datasets), subject);
    case v1::ClientMessage::kGiveBatches:
      return parse_give_batches(message.give_batches());
    case v1::ClientMessage::kStopEpoch:
      return or_refused(parse_stop_epoch(message.stop_epoch()), subject);
    case v1::ClientMessage::MESSAGE_NOT_SET:
      break;
  }
  return RefusedRequest{{}, field_error("message", "is empty")};
}

Result<OpenRequest> parse_open(const v1::OpenSessionRequest& request) {
  if (has_unknown_fields(request)) return unknown_field(request);
  OpenRequest parsed{.name = request.name(),
                     .job = request.job(),
                     .slots = request.slots(),
                     .slot_bytes = Bytes{request.slot_bytes()},
                     .memory = request.memory(),
                     .cache_at_once = request.cache_at_once(),
                     .samples = request.samples()};
  MILLRACE_TRY(parsed.cache, from_message("cache", request.cache()));
  MILLRACE_TRY(parsed.ticket, parse_ticket(request.ticket()));
  MILLRACE_TRY_VOID(check_name("name", parsed.name));
  MILLRACE_TRY_VOID(check_name("job", parsed.job));
  if (parsed.job.empty()) parsed.job = parsed.name;
  if (parsed.memory.size() > kMaxName)
    return field_error("memory", "must have at most " + std::to_string(kMaxName) + " bytes, has " +
                                     std::to_string(parsed.memory.size()));
  if (request.has_recipe()) {
    MILLRACE_TRY_IN("recipe", Recipe recipe, from_message(request.recipe()));
    parsed.recipe = std::make_shared<const Recipe>(std::move(recipe));
  }
  MILLRACE_TRY_VOID(check_range("slots", request.slots(), 1U, kMaxSlots));
  MILLRACE_TRY_VOID(check_range("slot_bytes", request.slot_bytes(), std::uint64_t{1}, kMaxSlotBytes));
  return parsed;
}

}  // namespace millrace
