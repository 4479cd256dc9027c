#include "daemon/serve/session_table.h"

#include <utility>

#include "daemon/memory/host_arena.h"
#include "proto/base/printable.h"
#include "proto/shm/segment_layout.h"

namespace millrace {
namespace {

Error no_such_ticket() {
  return Error{
      Code::kDenied,
      "ticket: not valid here; connect to the hand-off socket, and keep that connection open as long as the session"};
}

Error no_such_memory(std::string_view name_untrusted) {
  return Error{Code::kNotFound, "memory: there is no \"" + printable(name_untrusted) + "\" here; this daemon has " +
                                    std::string(kHostMemoryName)};
}

}  // namespace

SessionTable::SessionTable(boost::asio::io_context& control, Ledger& ledger, const Session::Services& services,
                           SegmentMaker& maker, Copier& copier, Counters& counters, const Limits& limits)
    : control_(control),
      ledger_(ledger),
      services_(services),
      maker_(maker),
      copier_(copier),
      counters_(counters),
      limits_(limits) {}

SessionTable::~SessionTable() {
  maker_.finish();  // or it would post to an event loop that may be gone
  for (const auto& [id, session] : sessions_)
    log_.say(LogLevel::kInfo, session->caller().uid,
             "session " + std::to_string(raw(id)) + " ended with the daemon: " + session->summary());
}

void SessionTable::open(OpenRequest request, std::function<void(Result<OpenedSession>)> done) {
  const std::optional<HandoffServer::Connection> connection = handoff_->find(request.ticket);
  if (!connection) return done(no_such_ticket());
  const ClientId client = connection->id;
  if (!request.memory.empty() && request.memory != kHostMemoryName) return done(no_such_memory(request.memory));
  if (opening_.contains(client) || by_client_.contains(client))
    return done(
        Error{Code::kPrecondition,
              "this ticket has opened its session already; every session needs a hand-off connection of its own"});
  const SessionId id{next_id_};
  Result<Admitted> admitted = admit(id, request, *connection->caller);
  if (!admitted) {
    log_refused(*connection->caller, request.name, admitted.error());
    return done(admitted.error());
  }
  ++next_id_;

  const SegmentOrder order{.size = shm::segment_bytes(request.slots, request.slot_bytes),
                           .head = shm::data_offset(request.slots),
                           .stride = shm::slot_stride(request.slot_bytes),
                           .slots = request.slots,
                           .whole = !request.slots_later,
                           .user = connection->caller->uid};
  const auto unwanted = std::make_shared<StopFlag>();
  Charge memory = std::move(admitted->memory);
  opening_.emplace(
      client, Opening{id, std::move(request), connection->caller, std::move(done), unwanted, *std::move(admitted)});
  handoff_->opening(client);
  maker_.make(
      order, std::move(memory), unwanted,
      {.made = [this, client](Result<std::shared_ptr<Segment>> segment) { segment_made(client, std::move(segment)); },
       .grown = [this, client](SegmentProgress progress) { segment_grown(client, std::move(progress)); }});
}

Result<SessionTable::Admitted> SessionTable::admit(SessionId id, const OpenRequest& request, const Caller& caller) {
  Admitted admitted{.account = ledger_.account({.user = caller.user(), .session = id}), .charges = {}, .memory = {}};
  MILLRACE_TRY(admitted.charges.slots, admitted.account->charge(Resource::kSlots, request.slots));
  MILLRACE_TRY(admitted.charges.session, admitted.account->charge(Resource::kSessions, 1));
  MILLRACE_TRY(admitted.memory,
               admitted.account->charge(Resource::kSegments, shm::segment_bytes(request.slots, request.slot_bytes)));
  return admitted;
}

void SessionTable::segment_made(ClientId client, Result<std::shared_ptr<Segment>> segment) {
  auto entry = opening_.extract(client);
  if (entry.empty()) return;  // disconnected meanwhile, and told so
  Opening& opening = entry.mapped();
  if (!segment) {
    handoff_->not_opened(client);
    log_refused(*opening.caller, opening.request.name, segment.error());
    return opening.done(std::move(segment).error());
  }

  const SessionId id = opening.id;
  auto arena = std::make_shared<HostArena>(*segment, opening.request.slots, opening.request.slot_bytes,
                                           opening.caller->user(), copier_);
  const OpenedSession opened{id, (*segment)->size(), opening.request.slots, opening.request.slot_bytes};
  Session::Parts parts{.id = id,
                       .client = client,
                       .caller = std::move(opening.caller),
                       .name = std::move(opening.request.name),
                       .slots = opening.request.slots,
                       .slot_bytes = opening.request.slot_bytes,
                       .cache = opening.request.cache,
                       .cache_at_once = opening.request.cache_at_once,
                       .segment = *std::move(segment),
                       .arena = std::move(arena),
                       .unwanted = std::move(opening.unwanted),
                       .account = std::move(opening.admitted.account),
                       .charges = std::move(opening.admitted.charges),
                       .listings = listings_,
                       .log = log_};
  const auto session =
      sessions_.emplace(id, std::make_unique<Session>(std::move(parts), control_, services_, counters_, limits_)).first;
  by_client_.emplace(client, id);
  const Caller& caller = session->second->caller();
  log_.say(LogLevel::kInfo, caller.uid,
           "session " + std::to_string(raw(id)) + " opened: " + session->second->opening_account());
  // If the client is gone, the event loop reports it after this: disconnected().
  const Result<void> handed = hand_over(*session->second);
  if (!handed) return opening.done(handed.error());
  opening.done(opened);
}

void SessionTable::segment_grown(ClientId client, SegmentProgress progress) {
  if (Session* session = find(client)) session->grown(std::move(progress));
}

void SessionTable::log_refused(const Caller& caller, const std::string& name_untrusted, const Error& why) {
  log_.say(level_of(why), caller.uid, "no session for " + who(caller, name_untrusted) + ": " + printable(why.message));
}

Result<void> SessionTable::hand_over(Session& session) {
  const HandedOver memory = session.arena().hand_over();
  MILLRACE_TRY(UniqueFd replies, handoff_->send_segment(session.client(), memory.descriptor, memory.bytes));
  MILLRACE_TRY(std::shared_ptr<ReplySocket> socket,
               ReplySocket::create(control_, std::move(replies), session.account()));
  session.reply_by(std::move(socket));
  return {};
}

std::optional<ClientId> SessionTable::client_of(const Ticket& ticket_untrusted) const {
  const std::optional<HandoffServer::Connection> connection = handoff_->find(ticket_untrusted);
  return connection ? std::optional(connection->id) : std::nullopt;
}

Result<std::shared_ptr<const Caller>> SessionTable::caller_with(const Ticket& ticket_untrusted) const {
  const std::optional<HandoffServer::Connection> connection = handoff_->find(ticket_untrusted);
  if (!connection) return no_such_ticket();
  return connection->caller;
}

Result<AttachedSession> SessionTable::attach(const Ticket& ticket_untrusted, StreamPort& stream) {
  const std::optional<HandoffServer::Connection> connection = handoff_->find(ticket_untrusted);
  if (!connection) return no_such_ticket();
  Session* session = find(connection->id);
  if (session == nullptr) return Error{Code::kPrecondition, "this ticket has no session yet: call Sessions.Open first"};
  MILLRACE_TRY_VOID(session->attach(stream));
  return AttachedSession{session->id(), session->datasets(), session->account()};
}

void SessionTable::handle(SessionId id, ClientRequest request, Charge room) {
  if (Session* session = find(id)) session->handle(std::move(request), std::move(room));
}

void SessionTable::detach(SessionId id, StreamEnd end) {
  if (Session* session = find(id)) session->detach(end);
}

void SessionTable::stream_ends(SessionId id) {
  if (Session* session = find(id)) session->stream_ends();
}

void SessionTable::disconnected(ClientId client, HandoffServer::Departure how) {
  const Error gone{Code::kUnavailable, "the session's hand-off connection has closed, and the session with it"};
  if (auto entry = opening_.extract(client)) {
    entry.mapped().unwanted->stop();
    return entry.mapped().done(gone);
  }
  const std::unique_ptr<Session> session = take(client, gone);
  if (!session) return;
  const bool closed = how == HandoffServer::Departure::kGoodbye || session->ended_by_client();
  if (!closed) counters_.add(MetricId::sessions_reclaimed);
  log_.say(closed ? LogLevel::kInfo : LogLevel::kWarning, session->caller().uid,
           "session " + std::to_string(raw(session->id())) +
               (closed ? " closed: " : " reclaimed, for its client died or was cut off: ") + session->summary());
}

// Out of the table; its memory is shut to its client, who hears `why`. nullptr: this client has none.
std::unique_ptr<Session> SessionTable::take(ClientId client, const Error& why) {
  const auto entry = by_client_.extract(client);
  if (entry.empty()) return nullptr;
  auto session = sessions_.extract(entry.mapped());
  session.mapped()->segment().revoke();
  if (StreamPort* stream = session.mapped()->stream()) stream->finish(why);
  return std::move(session.mapped());
}

Result<SessionTable::Closed> SessionTable::close(SessionId id, const Error& why) {
  const Session* const known = find(id);
  if (known == nullptr)
    return Error{Code::kNotFound, "there is no session " + std::to_string(raw(id)) +
                                      " (any more): `millrace admin status` shows those that are open"};
  const ClientId client = known->client();
  Closed closed{.caller = known->shared_caller(), .name = known->name()};
  const std::unique_ptr<Session> session = take(client, why);
  handoff_->dismiss(client);
  log_.say(LogLevel::kWarning, session->caller().uid,
           "session " + std::to_string(raw(id)) + " closed by an administrator: " + session->summary());
  return closed;
}

Result<UniqueFd> SessionTable::ring_wanted(ClientId client, Bytes size_untrusted) {
  Session* session = find(client);
  if (session == nullptr)
    return Error{Code::kPrecondition, "ask for a ring when the session is open: call Sessions.Open first"};
  return session->make_ring(size_untrusted);
}

void SessionTable::refuse_opening(const Error& why) {
  for (auto& [client, opening] : std::exchange(opening_, {})) {
    opening.unwanted->stop();
    handoff_->not_opened(client);
    opening.done(why);
  }
}

void SessionTable::log_denied(const Caller& caller, const std::string& what) {
  counters_.add(MetricId::requests_refused, code_name(Code::kDenied));
  log_.say(LogLevel::kWarning, caller.uid, who(caller, "") + " is no administrator, and wanted to " + what);
}

void SessionTable::describe(google::protobuf::RepeatedPtrField<v1::SessionStatistics>& sessions) const {
  for (const auto& [id, session] : sessions_) session->describe(*sessions.Add());
}

Session* SessionTable::find(SessionId id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

Session* SessionTable::find(ClientId client) const {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? nullptr : find(found->second);
}

}  // namespace millrace
