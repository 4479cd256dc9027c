#include "daemon/serve/sessions/session_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/memory/host_arena.h"
#include "daemon/serve/sessions/cost_messages.h"
#include "proto/base/printable.h"
#include "proto/shm/segment_layout.h"

namespace millrace {
namespace {

Error no_such_ticket() {
  return Error{
      Code::kDenied,
      "ticket: not valid here; connect to the hand-off socket, and keep that connection open as long as the session"};
}

Error no_such_memory(std::string_view name_untrusted, const std::vector<TensorMemory*>& memories) {
  std::string there(kHostMemoryName);
  for (const TensorMemory* memory : memories) there += ", " + memory->name();
  return Error{
      Code::kNotFound,
      "memory: there is no \"" + printable(name_untrusted) + "\" here; this daemon has " + there +
          (memories.empty() ? "; that of GPUs takes backends.cuda in its settings, or --cuda of a private daemon, and "
                              "cuda.tensors over 0"
                            : "")};
}

}  // namespace

SessionTable::SessionTable(boost::asio::io_context& control, Ledger& ledger, const Session::Services& services,
                           SegmentMaker& maker, Copier& copier, Counters& counters, InForce<Limits> limits)
    : control_(control),
      ledger_(ledger),
      services_(services),
      maker_(maker),
      copier_(copier),
      counters_(counters),
      limits_(std::move(limits)),
      exported_(control) {}

Result<std::unique_ptr<SessionTable>> SessionTable::create(boost::asio::io_context& control, Ledger& ledger,
                                                           const Session::Services& services, SegmentMaker& maker,
                                                           Copier& copier, Counters& counters, InForce<Limits> limits,
                                                           HandoffServer::Options handoff) {
  std::unique_ptr<SessionTable> table(
      new SessionTable(control, ledger, services, maker, copier, counters, std::move(limits)));
  MILLRACE_TRY(table->handoff_, HandoffServer::create(control, ledger, std::move(handoff), counters, *table));
  return table;
}

SessionTable::~SessionTable() {
  handoff_.reset();
  maker_.finish();  // or it would post to an event loop that may be gone
  for (const auto& [id, session] : sessions_)
    log_.say(LogLevel::kInfo, session->caller().uid,
             "session " + std::to_string(raw(id)) + " ended with the daemon: " + session->summary());
}

void SessionTable::open(OpenRequest request, std::function<void(Result<OpenedSession>)> done) {
  const std::optional<HandoffServer::Connection> connection = handoff_->find(request.ticket);
  if (!connection) return done(no_such_ticket());
  const ClientId client = connection->id;
  const Result<TensorMemory*> memory = memory_of(request.memory);
  if (!memory) return done(memory.error());
  if (opening_.contains(client) || by_client_.contains(client))
    return done(
        Error{Code::kPrecondition,
              "this ticket has opened its session already; every session needs a hand-off connection of its own"});
  if (request.recipe) {
    if (const Result<void> sound = services_.pipeline.check(request.recipe); !sound) {
      log_refused(*connection->caller, request.name, sound.error());
      return done(sound.error());
    }
  }
  const SessionId id{next_id_};
  Result<Admitted> admitted = admit(id, request, *connection->caller, *memory);
  if (!admitted) {
    log_refused(*connection->caller, request.name, admitted.error());
    return done(admitted.error());
  }
  ++next_id_;

  const Bytes slot_bytes = segment_slot(request, *memory);
  const SegmentOrder order{.size = shm::segment_bytes(request.slots, slot_bytes),
                           .head = shm::data_offset(request.slots),
                           .stride = shm::slot_stride(slot_bytes),
                           .slots = request.slots,
                           .whole = !request.slots_later || *memory != nullptr,  // records alone are little
                           .user = connection->caller->uid};
  const auto unwanted = std::make_shared<StopFlag>();
  Charge charge = std::move(admitted->memory);
  opening_.emplace(client, Opening{.id = id,
                                   .request = std::move(request),
                                   .caller = connection->caller,
                                   .done = std::move(done),
                                   .unwanted = unwanted,
                                   .admitted = *std::move(admitted),
                                   .memory = *memory,
                                   .slot_bytes = slot_bytes});
  handoff_->opening(client);
  maker_.make(
      order, std::move(charge), unwanted,
      {.made = [this, client](Result<std::shared_ptr<Segment>> segment) { segment_made(client, std::move(segment)); },
       .grown = [this, client](SegmentProgress progress) { segment_grown(client, std::move(progress)); }});
}

// nullptr: the host's.
Result<TensorMemory*> SessionTable::memory_of(const std::string& name_untrusted) const {
  if (name_untrusted.empty() || name_untrusted == kHostMemoryName) return static_cast<TensorMemory*>(nullptr);
  const std::vector<TensorMemory*> memories = services_.pipeline.memories();
  for (TensorMemory* const memory : memories)
    if (memory->name() == name_untrusted) return memory;
  return no_such_memory(name_untrusted, memories);
}

// A slot of the segment: the whole one, or room for the records of a batch, which are in the host's memory in any case: of
// as many images as it was told of, and of as many as fit the slot if their tensors are of 32 x 32 pixels, or larger.
Bytes SessionTable::segment_slot(const OpenRequest& request, const TensorMemory* memory) const {
  if (memory == nullptr) return request.slot_bytes;
  constexpr std::uint64_t kSmallest = sizeof(shm::SampleRecord) + 3 * 32 * 32;
  const std::uint64_t samples = std::min<std::uint64_t>(
      limits_.now().batch.samples, std::max<std::uint64_t>(request.samples, request.slot_bytes.count / kSmallest + 1));
  return Bytes{sizeof(shm::SampleRecord)} * samples;
}

Result<SessionTable::Admitted> SessionTable::admit(SessionId id, const OpenRequest& request, const Caller& caller,
                                                   const TensorMemory* memory) {
  Admitted admitted{
      .account = ledger_.account({.user = caller.user(), .session = id}), .charges = {}, .memory = {}, .exported = {}};
  const Bytes whole = shm::segment_bytes(request.slots, request.slot_bytes);
  const Bytes segment = shm::segment_bytes(request.slots, segment_slot(request, memory));
  MILLRACE_TRY(admitted.charges.slots, admitted.account->charge(Resource::kSlots, request.slots));
  MILLRACE_TRY(admitted.charges.session, admitted.account->charge(Resource::kSessions, 1));
  MILLRACE_TRY(admitted.memory, admitted.account->charge(Resource::kSegments, segment));
  if (memory == nullptr) return admitted;
  MILLRACE_TRY(admitted.charges.staging, admitted.account->charge(Resource::kSegments, whole - segment));
  const TensorMemory::Order order{.slots = request.slots, .slot_bytes = request.slot_bytes};
  MILLRACE_TRY(BorrowingProcess process, BorrowingProcess::of(caller.pid));
  admitted.exported = exported_.take_again(process, caller.user(), *memory, order.charged());
  if (!admitted.exported) {
    MILLRACE_TRY(admitted.exported, export_to(*admitted.account, std::move(process), *memory, order.charged()));
  }
  return admitted;
}

Result<ExportedTo> SessionTable::export_to(Account& account, BorrowingProcess process, const TensorMemory& memory,
                                           Bytes charged) {
  exported_.drop_lost();
  MILLRACE_TRY(Charge charge, account.charge(Resource::kDeviceTensors, charged));
  Charge of_process;
  if (!exported_.watches(process)) {
    MILLRACE_TRY(of_process, account.charge(Resource::kExportProcesses, 1));
  }
  return ExportedTo{.process = std::move(process),
                    .charge = std::move(charge),
                    .of_process = std::move(of_process),
                    .account = account.shared_from_this(),
                    .memory = &memory};
}

// What is exported again to a session that does not come about stays exported.
void SessionTable::keep_exported(Opening& opening) {
  std::optional<ExportedTo> exported = std::exchange(opening.admitted.exported, std::nullopt);
  if (!exported || !exported->room) return;
  exported->given_back = true;
  exported_.keep(*std::move(exported));
}

void SessionTable::segment_made(ClientId client, Result<std::shared_ptr<Segment>> segment) {
  const auto entry = opening_.find(client);
  if (entry == opening_.end()) return;  // disconnected meanwhile, and told so
  Opening& opening = entry->second;
  if (!segment) return not_opened(client, opening, segment.error());
  opening.segment = *std::move(segment);
  if (opening.memory == nullptr)
    return begin(client, opening,
                 std::make_shared<HostArena>(opening.segment, opening.request.slots, opening.request.slot_bytes,
                                             opening.caller->user(), copier_));
  make_arena(client, opening);
}

void SessionTable::make_arena(ClientId client, const Opening& opening) {
  opening.memory->make(
      control_,
      {.slots = opening.request.slots,
       .slot_bytes = opening.request.slot_bytes,
       .most_samples = static_cast<std::uint32_t>(opening.slot_bytes.count / sizeof(shm::SampleRecord))},
      opening.admitted.exported->room, [this, client](Result<MadeArena> made) { arena_made(client, std::move(made)); });
}

// What was lost with the device cannot be exported again.
Result<void> SessionTable::export_anew(Opening& opening) {
  const Bytes charged{opening.admitted.exported->charge.amount()};
  MILLRACE_TRY(BorrowingProcess process, BorrowingProcess::of(opening.caller->pid));
  keep_exported(opening);
  MILLRACE_TRY(opening.admitted.exported,
               export_to(*opening.admitted.account, std::move(process), *opening.memory, charged));
  return {};
}

void SessionTable::arena_made(ClientId client, Result<MadeArena> made) {
  const auto entry = opening_.find(client);
  if (entry == opening_.end()) return;  // as above
  Opening& opening = entry->second;
  if (const auto& again = opening.admitted.exported->room; !made && again && again->is_lost()) {
    const Result<void> exported = export_anew(opening);
    return exported ? make_arena(client, opening) : not_opened(client, opening, exported.error());
  }
  if (!made) return not_opened(client, opening, made.error());
  opening.admitted.exported->room = std::move(made->room);
  begin(client, opening, std::move(made->arena));
}

void SessionTable::not_opened(ClientId client, Opening& opening, const Error& why) {
  handoff_->not_opened(client);
  log_refused(*opening.caller, opening.request.name, why);
  const auto done = std::move(opening.done);
  opening.unwanted->stop();
  keep_exported(opening);
  opening_.erase(client);
  done(why);
}

void SessionTable::begin(ClientId client, Opening& opening_until_then, std::shared_ptr<Arena> arena) {
  Opening opening = std::move(opening_until_then);
  opening_.erase(client);
  const SessionId id = opening.id;
  const TensorMemory* const memory = opening.memory;
  const OpenedSession opened{.id = id,
                             .segment = opening.segment->size(),
                             .slots = opening.request.slots,
                             .slot_bytes = opening.request.slot_bytes,
                             .memory = memory,
                             .memory_bytes = arena->hand_over().bytes};
  Session::Parts parts{.id = id,
                       .client = client,
                       .caller = std::move(opening.caller),
                       .name = std::move(opening.request.name),
                       .job = std::move(opening.request.job),
                       .slots = opening.request.slots,
                       .slot_bytes = opening.slot_bytes,
                       .cache = opening.request.cache,
                       .cache_at_once = opening.request.cache_at_once,
                       .segment = std::move(opening.segment),
                       .arena = std::move(arena),
                       .exported = std::move(opening.admitted.exported),
                       .memory = memory == nullptr ? std::string() : memory->name(),
                       .unwanted = std::move(opening.unwanted),
                       .account = std::move(opening.admitted.account),
                       .charges = std::move(opening.admitted.charges),
                       .listings = listings_,
                       .parsing = parsing_,
                       .log = log_,
                       .jobs = jobs_};
  const auto session =
      sessions_.emplace(id, std::make_unique<Session>(std::move(parts), control_, services_, counters_, limits_)).first;
  by_client_.emplace(client, id);
  const Caller& caller = session->second->caller();
  log_.say(LogLevel::kInfo, caller.uid,
           "session " + std::to_string(raw(id)) + " opened: " + session->second->opening_account());
  // If the client is gone, the event loop reports it after this: disconnected().
  const Result<void> handed = hand_over(*session->second, memory);
  if (!handed) return opening.done(handed.error());
  opening.done(opened);
}

void SessionTable::segment_grown(ClientId client, SegmentProgress progress) {
  if (Session* session = find(client)) session->grown(std::move(progress));
}

void SessionTable::log_refused(const Caller& caller, const std::string& name_untrusted, const Error& why) {
  log_.say(level_of(why), caller.uid, "no session for " + who(caller, name_untrusted) + ": " + printable(why.message));
}

Result<void> SessionTable::hand_over(Session& session, const TensorMemory* memory) {
  MILLRACE_TRY(UniqueFd replies,
               handoff_->send_segment(session.client(), session.segment().read_only_fd(), session.segment().size()));
  MILLRACE_TRY(std::shared_ptr<ReplySocket> socket,
               ReplySocket::create(control_, std::move(replies), session.account()));
  session.reply_by(std::move(socket), [this, client = session.client()] { handoff_->expel(client); });
  if (memory == nullptr) return {};
  const HandedOver tensors = session.arena().hand_over();
  return handoff_->send_memory(session.client(), tensors.descriptor, tensors.bytes, memory->device());
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

Result<SessionId> SessionTable::attach(const Ticket& ticket_untrusted, StreamPort& stream) {
  const std::optional<HandoffServer::Connection> connection = handoff_->find(ticket_untrusted);
  if (!connection) return no_such_ticket();
  Session* session = find(connection->id);
  if (session == nullptr) return Error{Code::kPrecondition, "this ticket has no session yet: call Sessions.Open first"};
  MILLRACE_TRY_VOID(session->attach(stream));
  return session->id();
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
    keep_exported(entry.mapped());
    return entry.mapped().done(gone);
  }
  const bool said_goodbye = how != HandoffServer::Departure::kGone;
  const std::unique_ptr<Session> session =
      take(client, gone, how == HandoffServer::Departure::kLetGo ? Exported::kGivenBack : Exported::kMapped);
  if (!session) return;
  const bool closed = said_goodbye || session->ended_by_client();
  if (!closed) counters_.add(MetricId::sessions_reclaimed);
  log_.say(closed ? LogLevel::kInfo : LogLevel::kWarning, session->caller().uid,
           "session " + std::to_string(raw(session->id())) +
               (closed ? " closed: " : " reclaimed, for its client died or was cut off: ") + session->summary());
}

// Out of the table; its memory is shut to its client, who hears `why`. nullptr: this client has none.
std::unique_ptr<Session> SessionTable::take(ClientId client, const Error& why, Exported memory) {
  const auto entry = by_client_.extract(client);
  if (entry.empty()) return nullptr;
  auto session = sessions_.extract(entry.mapped());
  session.mapped()->segment().revoke();
  if (std::optional<ExportedTo> exported = session.mapped()->take_exported()) {
    exported->given_back = memory == Exported::kGivenBack;
    exported_.keep(*std::move(exported));
  }
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
  const std::unique_ptr<Session> session = take(client, why, Exported::kMapped);
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
    keep_exported(opening);
    opening.done(why);
  }
}

void SessionTable::log_denied(const Caller& caller, const std::string& what) {
  counters_.add(MetricId::requests_refused, code_name(Code::kDenied));
  log_.say(LogLevel::kWarning, caller.uid, who(caller, "") + " is no administrator, and wanted to " + what);
}

void SessionTable::log_recording(const Caller& caller, const std::string& of) {
  log_.say(LogLevel::kInfo, caller.uid, who(caller, "") + " records " + of);
}

void SessionTable::describe(google::protobuf::RepeatedPtrField<v1::SessionStatistics>& sessions) const {
  services_.pipeline.control_time().settle();
  for (const auto& [id, session] : sessions_) session->describe(*sessions.Add());
}

void SessionTable::describe_costs(v1::GetStatisticsReply& statistics) {
  services_.pipeline.control_time().settle();
  millrace::describe(jobs_, statistics);
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
