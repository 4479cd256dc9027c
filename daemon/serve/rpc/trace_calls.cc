#include "daemon/serve/rpc/trace_calls.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/formats/format_table.h"
#include "daemon/model/stopping.h"
#include "daemon/serve/parse/parse_message.h"
#include "daemon/serve/sessions/session.h"
#include "proto/rpc/known.h"
#include "proto/rpc/status_map.h"

namespace millrace {
namespace {

constexpr std::chrono::seconds kBetweenStates{1};

std::string_view format_name(std::uint8_t kind) {
  return format_of(static_cast<ImageFormat>(kind)).name;
}

Result<std::chrono::nanoseconds> length_of(double seconds_untrusted) {
  const std::chrono::duration<double> length(seconds_untrusted);
  if (length > std::chrono::seconds(0) && length <= trace::kLongestRecording)  // no number: neither
    return std::chrono::duration_cast<std::chrono::nanoseconds>(length);
  return Error{Code::kInvalid, "seconds: must be more than 0 and at most " +
                                   std::to_string(trace::kLongestRecording.count()) + ", is " +
                                   std::to_string(seconds_untrusted)};
}

}  // namespace

TraceCalls::TraceCalls(StreamSurroundings& around, const Pipeline& pipeline, Ledger& ledger, const Counters& counters)
    : around_(around), pipeline_(pipeline), ledger_(ledger), recorder_(counters, format_name), later_(around.control) {}

// One call. At most one part is being written. Owned by gRPC until OnDone, then by the posting that deletes it.
class TraceCalls::Call final : public grpc::ServerWriteReactor<v1::TracePart> {
 public:
  Call(TraceCalls& calls, grpc::CallbackServerContext& call, const v1::TraceRequest& untrusted)
      : calls_(calls), control_(calls.around_.control), call_(call) {
    if (has_unknown_fields(untrusted)) {
      Finish(to_status(unknown_field(untrusted)));
      return;
    }
    boost::asio::post(control_, [this, untrusted] { begin(untrusted); });
  }

  // gRPC's threads:
  void OnCancel() override {
    boost::asio::post(control_, [this] { is_unwanted_ = true, go_on(); });
  }
  void OnWriteDone(bool ok) override {
    boost::asio::post(control_, [this, ok] {
      is_writing_ = false;
      is_unwanted_ = is_unwanted_ || !ok;
      go_on();
    });
  }
  void OnDone() override {
    boost::asio::post(control_, [own = std::unique_ptr<Call>(this)] {});
  }

  // Control thread:
  void end(const Error& why) {
    why_ = why;
    recording_->end();
  }

 private:
  void begin(const v1::TraceRequest& untrusted) {
    if (calls_.around_.stopping) return refuse(answer_with(stopping(), call_));
    const Result<Ticket> ticket = parse_ticket(untrusted.ticket());
    if (!ticket) return refuse(to_status(ticket.error()));
    const auto caller = calls_.around_.sessions.caller_with(*ticket);
    if (!caller) return refuse(ticket_status(caller.error()));
    if (const Result<void> begun = record(**caller, untrusted); !begun) return refuse(to_status(begun.error()));
    calls_.open_.insert(this);
    go_on();
  }

  Result<void> record(const Caller& caller, const v1::TraceRequest& untrusted) {
    MILLRACE_TRY(const std::chrono::nanoseconds length, length_of(untrusted.seconds()));
    MILLRACE_TRY(const trace::Scope scope, calls_.scope_of(caller, SessionId{untrusted.session_id()}));
    MILLRACE_TRY(memory_, calls_.ledger_.charge(Resource::kRequests, {.user = caller.user(), .session = {}},
                                                trace::Recording::kMemory + trace::memory_of_buffers()));
    // mr-trace may tell of a part when this is gone.
    auto told = [&control = control_, still = std::weak_ptr(still_)] {
      boost::asio::post(control, [still] {
        if (const auto there = still.lock()) (*there)->go_on();
      });
    };
    MILLRACE_TRY(recording_, calls_.recorder_.begin(scope, caller.user(), length, std::move(told)));
    calls_.name_sessions();
    calls_.pipeline_.record_all();
    const std::string what = raw(scope.session) != 0 ? "session " + std::to_string(raw(scope.session)) : "sessions";
    calls_.around_.sessions.log_recording(
        caller, what + " for " + std::to_string(std::chrono::duration<double>(length).count()) + " s");
    return {};
  }

  void refuse(grpc::Status status) {
    is_finished_ = true;
    Finish(std::move(status));
  }

  void go_on() {
    if (is_writing_ || is_finished_ || !recording_) return;
    if (is_unwanted_) return finish(grpc::Status::CANCELLED);
    if (recording_->take_was_lost()) calls_.record_states_again();
    const bool has_ended = recording_->has_ended();  // before take(): no part comes after it
    if (std::optional<std::string> part = recording_->take()) {
      part_.set_packets(*std::move(part));
      is_writing_ = true;
      return StartWrite(&part_);
    }
    if (has_ended) finish(why_ ? answer_with(*why_, call_) : grpc::Status::OK);
  }

  void finish(grpc::Status status) {
    recording_->end();
    calls_.open_.erase(this);
    refuse(std::move(status));
  }

  TraceCalls& calls_;
  boost::asio::io_context& control_;
  grpc::CallbackServerContext& call_;
  const std::shared_ptr<Call*> still_ = std::make_shared<Call*>(this);
  Charge memory_;
  trace::RecordingPtr recording_;  // null: it has not begun
  v1::TracePart part_;             // gRPC's while it is written
  std::optional<Error> why_;       // it ends early
  bool is_writing_ = false, is_unwanted_ = false, is_finished_ = false;
};

grpc::ServerWriteReactor<v1::TracePart>* TraceCalls::begin(grpc::CallbackServerContext& call,
                                                           const v1::TraceRequest& request_untrusted) {
  return new Call(*this, call, request_untrusted);  // owns itself: see there
}

void TraceCalls::end_all(const Error& why) {
  for (Call* const call : open_) call->end(why);
}

Result<trace::Scope> TraceCalls::scope_of(const Caller& caller, SessionId session_untrusted) {
  const bool is_admin = around_.admins.include(caller);
  if (raw(session_untrusted) == 0)
    return trace::Scope{.user = is_admin ? std::nullopt : std::optional(caller.user()), .session = {}};
  if (const Session* const session = around_.sessions.session(session_untrusted)) {
    if (is_admin || session->caller().uid == caller.uid)
      return trace::Scope{.user = session->caller().user(), .session = session_untrusted};
    around_.sessions.log_denied(caller, "record another user's session");
    return around_.admins.refusal(caller, "record another user's session");
  }
  return Error{Code::kNotFound, "session_id: there is no session " + std::to_string(raw(session_untrusted))};
}

// A second is over before it is done again: where sessions are so many that their states overfill a buffer, more would be
// lost each time.
void TraceCalls::record_states_again() {
  if (states_are_due_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - states_recorded_ >= kBetweenStates) {
    states_recorded_ = now;
    return pipeline_.record_all();
  }
  states_are_due_ = true;
  later_.expires_at(states_recorded_ + kBetweenStates);
  later_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled) return;
    states_are_due_ = false;
    record_states_again();
  });
}

void TraceCalls::name_sessions() const {
  around_.sessions.for_each([](const Session& session) { session.name_in_recordings(); });
}

}  // namespace millrace
