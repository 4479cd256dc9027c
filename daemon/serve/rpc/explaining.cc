#include "daemon/serve/rpc/explaining.h"

#include <algorithm>
#include <utility>

#include "daemon/model/stopping.h"
#include "daemon/serve/parse/parse_message.h"
#include "daemon/serve/sessions/session_table.h"
#include "proto/base/printable.h"
#include "proto/rpc/status_map.h"

namespace millrace {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};
constexpr std::chrono::milliseconds kGoodFor{50};  // what was found, however many ask

std::uint64_t stored(const Counters& counters, MetricId id) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, counters.stored(id)));
}

void write(const Explained& explained, bool paths, v1::SessionFindings& findings) {
  findings.set_seconds(explained.seconds);
  findings.set_images_per_second(explained.images_per_second);
  findings.set_waited(explained.waited);
  findings.set_waits_told(explained.waits_told);
  for (const Cause& cause : explained.causes) {
    v1::Finding& finding = *findings.add_findings();
    finding.set_code(std::string(cause.code));
    finding.set_share(cause.share);
    finding.set_text(cause.text);
    finding.set_advice(cause.advice);
    finding.set_images_per_second(cause.images_per_second);
    for (const CauseFigure& one : cause.figures) {
      v1::Figure& figure = *finding.add_figures();
      figure.set_name(std::string(one.name));
      figure.set_unit(std::string(one.unit));
      figure.set_value(one.value);
    }
    if (!paths) continue;
    for (const std::string& path : cause.paths) finding.add_paths(path);
  }
}

void write(const SessionHistory& kept, v1::History& history) {
  history.set_step_seconds(std::chrono::duration<double>(kBetweenLooks).count());
  for (const float value : kept.images_per_second()) history.add_images_per_second(value);
  for (const float value : kept.waited()) history.add_waited(value);
}

}  // namespace

Explaining::Explaining(const StreamSurroundings& around, const Pipeline& pipeline, const Counters& counters,
                       const Ledger& ledger, Settings settings)
    : around_(around),
      pipeline_(pipeline),
      counters_(counters),
      ledger_(ledger),
      settings_(std::move(settings)),
      backends_(pipeline.backends()),
      next_(around.control) {}

void Explaining::start() {
  next_.expires_after(std::chrono::seconds(0));
  look_later();
}

void Explaining::stop() {
  next_.cancel();
}

void Explaining::look_later() {
  next_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled || around_.stopping) return;
    look();
    next_.expires_after(kBetweenLooks);
    look_later();
  });
}

void Explaining::look() {
  const Clock::time_point now = Clock::now();
  daemon_.add(daemon_look(now));
  std::erase_if(kept_, [&](const auto& one) { return around_.sessions.session(one.first) == nullptr; });
  around_.sessions.for_each([&](const Session& session) {
    if (!kept_.contains(session.id()) && kept_.size() < kMostKept)
      kept_.emplace(session.id(), Kept{.history = SessionHistory(session.first_look())});
    if (const auto kept = kept_.find(session.id()); kept != kept_.end()) kept->second.history.add(session.look(now));
  });
}

DaemonLook Explaining::daemon_look(Clock::time_point now) {
  const auto counted = [&](MetricId id) { return stored(counters_, id); };
  return {.at = now,
          .lanes = pipeline_.lane_time(),
          .bytes_read = counted(MetricId::encoded_bytes),
          .reading = std::chrono::microseconds(counted(MetricId::fetch_time)),
          .images = counted(MetricId::samples_completed),
          .first_touches = counted(MetricId::cache_first_touches),
          .cache_hits = counted(MetricId::cache_hits),
          .cache_misses = counted(MetricId::cache_misses),
          .cache_evictions = counted(MetricId::cache_evictions),
          .shortages = counted(MetricId::fetch_waits),
          .host = host_.look()};
}

// Sessions are gone through once a look, however many are asked about.
void Explaining::count_users() {
  std::map<std::uint32_t, OtherUser> users;
  around_.sessions.for_each([&](const Session& one) {
    OtherUser& user = users[one.caller().uid];
    if (user.sessions++ == 0)
      user = {one.caller().uid, pipeline_.shares().weight_of(one.caller().user()), user.sessions};
  });
  users_.clear();
  for (const auto& [uid, user] : users) users_.push_back(user);
  std::ranges::stable_sort(users_, std::ranges::greater(), &OtherUser::weight);
}

Circumstances Explaining::circumstances_of(const Session& session) const {
  Circumstances around{.slots = session.slots().slots(),
                       .slots_not_ready = session.slots().slots_not_ready(),
                       .files = session.files_listed(),
                       .weight = pipeline_.shares().weight_of(session.caller().user()),
                       .other_sessions = static_cast<std::uint32_t>(around_.sessions.sessions() - 1),
                       .others = users_,
                       .reading = session.signs().reading.sums(),
                       .making = session.signs().making.sums(),
                       .left_because = printable(session.signs().why_left),
                       .keeps = session.cache() >= CacheUse::kPacked,
                       .drains = around_.refusal.has_value(),
                       .cache_memory = settings_.cache_memory,
                       .cache_bytes = Bytes{stored(counters_, MetricId::cache_bytes)},
                       .encoded_in_flight = Bytes{ledger_.bounds(Resource::kEncoded).total},
                       .decoding = Bytes{ledger_.bounds(Resource::kDecoding).total}};
  std::erase_if(around.others, [&](const OtherUser& user) { return user.uid == session.caller().uid; });
  if (settings_.missing_roots) around.missing_roots = settings_.missing_roots();
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    const bool processor = !backends_[i].instruction_sets.empty();
    if (processor) around.lanes += backends_[i].lanes;
    if (processor || backends_[i].by_pin_only) continue;
    around.has_device = true;
    if (pipeline_.backend_lost(i)) around.lost = backends_[i].name;
  }
  return around;
}

// From the oldest look that is kept until now.
Explained Explaining::explain_now(const Session& session, const SessionLook& then) const {
  const DaemonLook& daemon_then = daemon_.empty() ? newest_ : daemon_.nearest(then.at);
  const Clock::time_point at = std::max(newest_.at, then.at);  // it may have been opened a moment ago
  return explain(then, session.look(at), daemon_then, newest_, circumstances_of(session));
}

void Explaining::answer(const Session& session, bool history, bool paths, v1::SessionFindings& findings) {
  findings.set_session_id(raw(session.id()));
  findings.set_name(session.name());
  findings.set_uid(session.caller().uid);
  findings.set_job(session.job());
  const auto kept = kept_.find(session.id());
  if (kept == kept_.end()) return write(explain_now(session, session.first_look()), paths, findings);
  Kept& known = kept->second;
  if (newest_.at - known.explained_at >= kGoodFor) {
    known.explained = explain_now(session, known.history.oldest());
    known.explained_at = newest_.at;
  }
  write(known.explained, paths, findings);
  if (history) write(known.history, *findings.mutable_history());
}

grpc::Status Explaining::answer(const v1::ExplainRequest& request_untrusted, v1::ExplainReply& reply) {
  if (around_.stopping) return to_status(stopping());
  std::shared_ptr<const Caller> caller;  // null: nobody has said who asks
  if (!request_untrusted.ticket().empty()) {
    const Result<Ticket> ticket = parse_ticket(request_untrusted.ticket());
    if (!ticket) return to_status(ticket.error());
    const auto known = around_.sessions.caller_with(*ticket);
    if (!known) return ticket_status(known.error());
    caller = *known;
  }
  const auto may_see_paths = [&](const Session& session) {
    return caller && (caller->uid == session.caller().uid || around_.admins.include(*caller));
  };
  const SessionId wanted{request_untrusted.session_id()};
  const Session* const one = around_.sessions.session(wanted);
  if (raw(wanted) != 0 && one == nullptr)
    return to_status(Error{Code::kNotFound, "there is no session " + std::to_string(raw(wanted)) + " (any more)"});
  if (const Clock::time_point now = Clock::now(); now - newest_.at >= kGoodFor) {
    newest_ = daemon_look(now);
    count_users();
  }
  around_.sessions.for_each([&](const Session& session) {
    if (one != nullptr && one != &session) return;
    answer(session, request_untrusted.history(), may_see_paths(session), *reply.add_sessions());
  });
  return grpc::Status::OK;
}

}  // namespace millrace
