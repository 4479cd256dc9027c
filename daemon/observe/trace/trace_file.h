// Makes of events the packets of one recording: rows for threads, sessions and batches, with slices that nest, and
// counters. It writes what the recording's caller may see, and says how much is missing.
//
//   session 3 "train"
//     state      idle │ reading │ making │ settling │ ...
//     batches    batch 7: reading │ making │ settling     each batch in the first row that is free
//     slots      free, under way, with the program: counters
//
// A row's open slices end when the recording does, or loses something. Thread-bound(its owner).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/observe/trace/points.h"
#include "proto/trace/packet_writer.h"

namespace millrace::trace {

// What a recording is of.
struct Scope {
  std::optional<UserId> user;  // whose sessions; nullopt: everybody's
  SessionId session{};         // 0: all of these

  bool has(const Subject& of) const {
    return (!user || *user == of.user) && (session == SessionId{} || session == of.session);
  }
};

using FormatName = std::string_view (*)(std::uint8_t kind);  // of an image; lasts

// One gauge of the daemon's own.
struct Gauge {
  std::string_view name;
  CountUnit unit = CountUnit::kCount;
  std::int64_t value = 0;
};

class TraceFile {
 public:
  TraceFile(const Scope& scope, FormatName format, std::int64_t since);

  void name(const SessionNames& names);
  void add(std::int64_t tid, const std::string& thread, const Event& event);
  void set(const Gauge& gauge, std::int64_t at);  // if it is another value than before
  // So many events are missing from here on: what is open ends.
  void lost(std::uint64_t events, std::int64_t at);
  void finish(std::int64_t at);  // what is open ends

  bool session_has_ended() const { return session_has_ended_; }  // the one that the scope names
  // Whether something was lost since the last call, so that states have to be told again.
  bool take_was_lost() { return std::exchange(was_lost_, false); }

  std::size_t bytes() const { return writer_.bytes(); }
  std::string take() { return writer_.take(); }

 private:
  struct Row {
    std::uint64_t batch = 0;  // its key; 0: it is free
    std::string_view stage;   // in which it is
    bool is_known = false;    // the row is written
  };
  struct SessionRows {
    bool is_known = false, has_ended = false;
    std::int64_t last = 0;  // event
    std::optional<std::uint8_t> state;
    std::vector<Row> rows;
    std::array<std::optional<std::uint64_t>, 3> slots;
  };
  struct ThreadRow {
    bool is_known = false, is_busy = false;
    std::int64_t last = 0;  // event
  };

  void add_work(std::int64_t tid, const std::string& thread, const Event& event);
  void add_slice(std::uint64_t track, const Event& event);
  void add_state(const Event& event);
  void add_slots(const Event& event);
  void add_stage(const Event& event);
  void add_batch_end(const Event& event);
  void end_session(const Event& event);
  void forget_ended(SessionId id);
  void count_queue(const Event& event);
  SessionRows& session(SessionId id);
  void end_open(std::optional<std::int64_t> at);

  const Scope scope_;
  const FormatName format_name_;
  const std::int64_t since_;
  PacketWriter writer_{1};
  std::unordered_map<SessionId, SessionNames> names_;
  std::map<std::int64_t, ThreadRow> threads_;  // by tid
  std::map<SessionId, SessionRows> sessions_;
  std::map<std::string, std::pair<std::uint64_t, std::int64_t>, std::less<>> counters_;  // row and value, by name
  std::uint64_t lost_ = 0;
  bool was_lost_ = false, session_has_ended_ = false;
};

}  // namespace millrace::trace
