#include "daemon/observe/trace/trace_file.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/observe/session_states.h"
#include "proto/base/printable.h"

namespace millrace::trace {
namespace {

// Rows have numbers that those of other processes in the file do not have: the kind, then the process, then which.
enum class RowKind : std::uint64_t { kProcess = 1, kThread, kSession, kState, kBatches, kSlots, kCounter };

constexpr std::size_t kMostRows = 4'096;  // of batches of a session
constexpr std::size_t kNameBytes = 100;
constexpr std::array<const char*, 3> kSlotCounters{"slots free", "slots under way", "slots with the program"};

std::uint64_t row_number(RowKind kind, std::uint64_t which = 0, std::uint64_t part = 0) {
  static const std::uint64_t kProcess = static_cast<std::uint64_t>(::getpid()) & 0xFF'FFFFU;
  return (static_cast<std::uint64_t>(kind) << 60U) | (kProcess << 36U) | ((which & 0xFF'FFFFU) << 12U) | part;
}

std::string title_of(SessionId id, const SessionNames& names) {
  std::string title = "session " + std::to_string(raw(id));
  if (!names.name.empty()) title += " \"" + printable(names.name, kNameBytes) + "\"";
  if (!names.job.empty() && names.job != names.name) title += ", job \"" + printable(names.job, kNameBytes) + "\"";
  return title;
}

}  // namespace

TraceFile::TraceFile(const Scope& scope, FormatName format, std::int64_t since)
    : scope_(scope), format_name_(format), since_(since) {
  writer_.clocks();
  writer_.process(row_number(RowKind::kProcess), ::getpid(), "millraced");
  set({.name = "events lost"}, since);
}

void TraceFile::name(const SessionNames& names) {
  if (scope_.has(names.of) && names_.size() < kMostNames) names_.insert_or_assign(names.of.session, names);
}

void TraceFile::add(std::int64_t tid, const std::string& thread, const Event& event) {
  if (event.at < since_) return;  // of a recording before
  if (event.what >= What::kPortions) return count_queue(event);
  const bool is_of_a_thread = event.what <= What::kRead;
  // Threads' events are looked at one thread after the other: what lanes did for a session may follow its end.
  if (!scope_.has(event.of) || (session_has_ended_ && !is_of_a_thread)) return;
  if (!is_of_a_thread) session(event.of.session).last = event.at;
  switch (event.what) {
    case What::kJobBegins:
    case What::kPortionBegins:
    case What::kWorkEnds:
    case What::kImage:
    case What::kRead:
      return add_work(tid, thread, event);
    case What::kSessionState:
      return add_state(event);
    case What::kSlots:
      return add_slots(event);
    case What::kBatchStage:
      return add_stage(event);
    case What::kBatchEnds:
      return add_batch_end(event);
    case What::kSessionEnds:
      return end_session(event);
    case What::kPortions:
    case What::kJobs:
      return;
  }
}

void TraceFile::add_work(std::int64_t tid, const std::string& thread, const Event& event) {
  const std::uint64_t track = row_number(RowKind::kThread, static_cast<std::uint64_t>(tid));
  ThreadRow& row = threads_[tid];
  row.last = std::max(event.at, event.until);
  if (!std::exchange(row.is_known, true)) writer_.thread(track, ::getpid(), tid, thread);
  if (event.what == What::kWorkEnds) {
    if (std::exchange(row.is_busy, false)) writer_.end(track, event.at);
  } else if (event.what == What::kImage || event.what == What::kRead) {
    if (row.is_busy) add_slice(track, event);
  } else {
    row.is_busy = true;
    writer_.begin(track, event.at, event.what == What::kJobBegins ? "job" : "portion",
                  {{"session", raw(event.of.session)}, {"images", event.number}});
  }
}

void TraceFile::add_slice(std::uint64_t track, const Event& event) {
  if (event.what == What::kRead) {
    writer_.begin(track, event.at, event.failed ? "read, failed" : "read",
                  {{"image", std::uint64_t{event.index}}, {"bytes", event.number}});
  } else {
    const std::string name = std::string(format_name_(event.kind)) + (event.failed ? ", failed" : "");
    writer_.begin(track, event.at, name, {{"image", std::uint64_t{event.index}}, {"backend", event.text}});
  }
  writer_.end(track, event.until);
}

TraceFile::SessionRows& TraceFile::session(SessionId id) {
  SessionRows& rows = sessions_[id];
  if (std::exchange(rows.is_known, true)) return rows;
  const std::uint64_t track = row_number(RowKind::kSession, raw(id));
  const auto named = names_.find(id);
  writer_.track(track, row_number(RowKind::kProcess),
                title_of(id, named == names_.end() ? SessionNames{} : named->second));
  writer_.track(row_number(RowKind::kState, raw(id)), track, "state");
  for (std::size_t i = 0; i < kSlotCounters.size(); ++i)
    writer_.counter(row_number(RowKind::kSlots, raw(id), i), track, kSlotCounters[i], CountUnit::kCount);
  return rows;
}

void TraceFile::add_state(const Event& event) {
  SessionRows& rows = session(event.of.session);
  if (rows.state == event.kind) return;
  const std::uint64_t track = row_number(RowKind::kState, raw(event.of.session));
  if (rows.state) writer_.end(track, event.at);
  rows.state = event.kind;
  writer_.begin(track, event.at, session_state_name(static_cast<SessionState>(event.kind)));
}

void TraceFile::add_slots(const Event& event) {
  SessionRows& rows = session(event.of.session);
  const std::array<std::uint64_t, 3> now{event.index, event.number, event.more};
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (std::exchange(rows.slots[i], now[i]) != now[i])
      writer_.count(row_number(RowKind::kSlots, raw(event.of.session), i), event.at, static_cast<std::int64_t>(now[i]));
  }
}

void TraceFile::add_stage(const Event& event) {
  const SessionId id = event.of.session;
  std::vector<Row>& rows = session(id).rows;
  auto row = std::ranges::find(rows, event.number, &Row::batch);
  const bool is_new = row == rows.end();
  if (is_new) row = std::ranges::find(rows, std::uint64_t{0}, &Row::batch);
  if (row == rows.end()) {
    if (rows.size() == kMostRows) return;
    row = rows.insert(row, Row{});
  }
  const auto number = static_cast<std::uint64_t>(row - rows.begin());
  const std::uint64_t track = row_number(RowKind::kBatches, raw(id), number);
  if (!std::exchange(row->is_known, true)) writer_.track(track, row_number(RowKind::kSession, raw(id)), "batches");
  if (is_new) {
    row->batch = event.number;
    writer_.begin(track, event.at, "batch " + std::to_string(event.more), {{"images", std::uint64_t{event.index}}});
  } else if (row->stage == event.text) {
    return;
  } else {
    writer_.end(track, event.at);
  }
  row->stage = event.text;
  writer_.begin(track, event.at, event.text);
}

void TraceFile::add_batch_end(const Event& event) {
  std::vector<Row>& rows = session(event.of.session).rows;
  const auto row = std::ranges::find(rows, event.number, &Row::batch);
  if (row == rows.end() || event.number == 0) return;
  const std::uint64_t track =
      row_number(RowKind::kBatches, raw(event.of.session), static_cast<std::uint64_t>(row - rows.begin()));
  writer_.end(track, event.at);
  writer_.end(track, event.at, {{"end", std::string_view(event.failed ? "failed" : "handed over")}});
  row->batch = 0;
  row->stage = {};
  forget_ended(event.of.session);
}

// Its batches end when the last lane lets go of them.
void TraceFile::end_session(const Event& event) {
  SessionRows& rows = session(event.of.session);
  if (std::exchange(rows.state, std::nullopt))
    writer_.end(row_number(RowKind::kState, raw(event.of.session)), event.at);
  rows.has_ended = true;
  session_has_ended_ = scope_.session == event.of.session;
  forget_ended(event.of.session);
}

void TraceFile::forget_ended(SessionId id) {
  const SessionRows& rows = sessions_.at(id);
  if (rows.has_ended && std::ranges::all_of(rows.rows, [](const Row& row) { return row.batch == 0; }))
    sessions_.erase(id);
}

void TraceFile::count_queue(const Event& event) {
  const std::string name =
      event.what == What::kPortions ? "portions at fetch threads" : "jobs at " + std::string(event.text);
  set({.name = name, .value = static_cast<std::int64_t>(event.number)}, event.at);
}

void TraceFile::set(const Gauge& gauge, std::int64_t at) {
  auto found = counters_.find(gauge.name);
  if (found == counters_.end()) {
    const std::uint64_t track = row_number(RowKind::kCounter, counters_.size());
    writer_.counter(track, row_number(RowKind::kProcess), std::string(gauge.name), gauge.unit);
    counters_.emplace(gauge.name, std::pair(track, gauge.value));
    return writer_.count(track, at, gauge.value);
  }
  if (std::exchange(found->second.second, gauge.value) != gauge.value)
    writer_.count(found->second.first, at, gauge.value);
}

void TraceFile::lost(std::uint64_t events, std::int64_t at) {
  end_open(std::nullopt);
  lost_ += events;
  was_lost_ = true;
  writer_.some_are_missing();
  set({.name = "events lost", .value = static_cast<std::int64_t>(lost_)}, at);
}

void TraceFile::finish(std::int64_t at) {
  end_open(at);
}

// Without a time each at its last event, for others before `at` may be missing.
void TraceFile::end_open(std::optional<std::int64_t> at) {
  const auto end_of = [&](std::int64_t last) { return at ? std::max(*at, last) : last; };
  for (auto& [tid, row] : threads_) {
    if (std::exchange(row.is_busy, false))
      writer_.end(row_number(RowKind::kThread, static_cast<std::uint64_t>(tid)), end_of(row.last));
  }
  for (auto& [id, session] : sessions_) {
    if (std::exchange(session.state, std::nullopt))
      writer_.end(row_number(RowKind::kState, raw(id)), end_of(session.last));
    for (std::size_t i = 0; i < session.rows.size(); ++i) {
      if (std::exchange(session.rows[i].batch, 0) == 0) continue;
      const std::uint64_t track = row_number(RowKind::kBatches, raw(id), i);
      writer_.end(track, end_of(session.last));
      writer_.end(track, end_of(session.last));
      session.rows[i].stage = {};
    }
  }
}

}  // namespace millrace::trace
