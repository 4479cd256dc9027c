// All sessions: who may open one, whose hand-off connection closes one. Admission of sessions is here; of batches, in
// the pipeline.
//
//   Sessions.Open(ticket) ─▶ open(): caller, limits ─▶ SegmentMaker ─▶ segment_made()
//                                                                       │    └─▶ a device's memory, if asked for: arena_made()
//                            begin(): Session, descriptors to the hand-off connection ─▶ `done`
//                                                                       └─▶ segment_grown(): slots get ready
//   Stream: Attach(ticket) ─▶ attach()             end of the stream ─▶ detach()
//   hand-off connection closes ─▶ disconnected(): the session and everything that it holds goes
//
// Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/admit/ledger.h"
#include "daemon/memory/copier.h"
#include "daemon/memory/segment_maker.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "daemon/observe/counters.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/serve/handoff/exported_rooms.h"
#include "daemon/serve/handoff/handoff_server.h"
#include "daemon/serve/parse/client_request.h"
#include "daemon/serve/sessions/session.h"
#include "millrace/v1/statistics.pb.h"
#include "proto/base/result.h"

namespace millrace {

struct OpenedSession {
  SessionId id{};
  Bytes segment;
  std::uint32_t slots = 0;
  Bytes slot_bytes;
  const TensorMemory* memory = nullptr;  // in which its tensors are; nullptr: in the segment
  Bytes memory_bytes;
};

class SessionTable final : public HandoffServer::Events {
 public:
  // With its hand-off server, which listens when this returns. Errors: HandoffServer's. All that is passed by reference
  // outlives it.
  static Result<std::unique_ptr<SessionTable>> create(boost::asio::io_context& control, Ledger& ledger,
                                                      const Session::Services& services, SegmentMaker& maker,
                                                      Copier& copier, Counters& counters, InForce<Limits> limits,
                                                      HandoffServer::Options handoff);
  ~SessionTable() override;

  // `done` is called once, at once on an error that is known at once. kDenied: no such ticket. kPrecondition: it has
  // its session already. kExhausted: which budget, and how to raise it. kUnavailable: the hand-off connection closed
  // meanwhile.
  void open(OpenRequest request, std::function<void(Result<OpenedSession>)> done);

  // The hand-off connection whose ticket it is; nullopt: none.
  std::optional<ClientId> client_of(const Ticket& ticket_untrusted) const;

  // Whose ticket it is, with a session or without. kDenied: nobody's.
  Result<std::shared_ptr<const Caller>> caller_with(const Ticket& ticket_untrusted) const;

  // kDenied: no such ticket. kPrecondition: no session yet, or it had its stream. kUnavailable: no reply socket.
  // `stream` is used until detach() or disconnected().
  Result<SessionId> attach(const Ticket& ticket_untrusted, StreamPort& stream);
  void detach(SessionId id, StreamEnd end);  // nothing happens once the session is gone
  void stream_ends(SessionId id);            // likewise: its stream has its status

  // An administrator ends the session: its client is told `why`, and all that it has goes. kNotFound: there is none.
  struct Closed {
    std::shared_ptr<const Caller> caller;  // shared: it was the session's
    std::string name;
  };
  Result<Closed> close(SessionId id, const Error& why);

  std::size_t sessions() const { return sessions_.size(); }

  // The daemon stops or drains: a client that waits for memory gets `why`, and no more of it is made.
  void refuse_opening(const Error& why);
  void leave_waiting() { handoff_->leave_waiting(); }  // UnixListener's

  // look(session) at each, in the order in which they were opened.
  template <class Look>
  void for_each(Look look) const {
    for (const auto& [id, session] : sessions_) look(*session);
  }
  const Session* session(SessionId id) const { return find(id); }  // null: none, or none any more

  void describe(google::protobuf::RepeatedPtrField<v1::SessionStatistics>& sessions) const;
  void describe_costs(v1::GetStatisticsReply& statistics);  // of jobs and users, and the daemon's own
  // Somebody wanted to give an order that he may not.
  void log_denied(const Caller& caller, const std::string& what);
  void log_recording(const Caller& caller, const std::string& of);

  void disconnected(ClientId client, HandoffServer::Departure how) override;
  Result<UniqueFd> ring_wanted(ClientId client, Bytes size_untrusted) override;

 private:
  SessionTable(boost::asio::io_context& control, Ledger& ledger, const Session::Services& services, SegmentMaker& maker,
               Copier& copier, Counters& counters, InForce<Limits> limits);

  // What it was let in with.
  struct Admitted {
    std::shared_ptr<Account> account;  // shared: becomes the session's
    SessionCharges charges;
    Charge memory;  // becomes its segment's
    std::optional<ExportedTo> exported;
  };
  struct Opening {
    SessionId id;
    OpenRequest request;
    std::shared_ptr<const Caller> caller;  // shared: becomes the session's
    std::function<void(Result<OpenedSession>)> done;
    std::shared_ptr<StopFlag> unwanted;  // shared with the maker of the memory
    Admitted admitted;
    TensorMemory* memory = nullptr;              // a device's that it asked for
    Bytes slot_bytes;                            // in the segment
    std::shared_ptr<Segment> segment = nullptr;  // shared: becomes the session's
  };

  Result<TensorMemory*> memory_of(const std::string& name_untrusted) const;
  Bytes segment_slot(const OpenRequest& request, const TensorMemory* memory) const;
  Result<Admitted> admit(SessionId id, const OpenRequest& request, const Caller& caller, const TensorMemory* memory);
  Result<ExportedTo> export_to(Account& account, BorrowingProcess process, const TensorMemory& memory, Bytes charged);
  Result<void> export_anew(Opening& opening);
  void keep_exported(Opening& opening);
  void make_arena(ClientId client, const Opening& opening);
  void segment_made(ClientId client, Result<std::shared_ptr<Segment>> segment);
  void arena_made(ClientId client, Result<MadeArena> made);
  void not_opened(ClientId client, Opening& opening, const Error& why);
  void begin(ClientId client, Opening& opening, std::shared_ptr<Arena> arena);
  void segment_grown(ClientId client, SegmentProgress progress);
  Result<void> hand_over(Session& session, const TensorMemory* memory);
  void log_refused(const Caller& caller, const std::string& name_untrusted, const Error& why);
  // What its client says of a device's memory: that it has let go of it, or nothing.
  enum class Exported : std::uint8_t { kMapped, kGivenBack };
  std::unique_ptr<Session> take(ClientId client, const Error& why, Exported memory);
  Session* find(SessionId id) const;
  Session* find(ClientId client) const;

  boost::asio::io_context& control_;
  Ledger& ledger_;
  const Session::Services services_;
  SegmentMaker& maker_;
  Copier& copier_;
  Counters& counters_;
  const InForce<Limits> limits_;
  std::unique_ptr<HandoffServer> handoff_;
  LinesByUser log_;
  const std::shared_ptr<SharedListings> listings_ = std::make_shared<SharedListings>();  // shared: see SessionListings
  boost::asio::thread_pool parsing_{2};                                                  // of large requests
  ExportedRooms exported_;
  JobCosts jobs_;                        // outlives the sessions
  std::map<ClientId, Opening> opening_;  // their memory is being made
  std::map<SessionId, std::unique_ptr<Session>> sessions_;
  std::map<ClientId, SessionId> by_client_;
  std::uint64_t next_id_ = 1;
};

}  // namespace millrace
