// One session: its slots, its datasets, its results' way out, and what its client asks for. It lives from Sessions.Open
// until its hand-off connection closes; its one stream may end before that, and slots then stay readable.
//
//   opened ──attach()──▶ streaming ──detach()──▶ readable ──▶ destroyed: slots back, memory freed
//      └────────────────────┴──── hand-off connection closes ──────▲
//
// Thread-bound(control), but for the dataset table.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/memory/segment_maker.h"
#include "daemon/model/bytes/input_ring.h"
#include "daemon/model/caller.h"
#include "daemon/model/files/folder_lister.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "daemon/model/stop_flag.h"
#include "daemon/observe/bounded_log.h"
#include "daemon/observe/counters.h"
#include "daemon/observe/explain/looks.h"
#include "daemon/observe/explain/session_signs.h"
#include "daemon/observe/job_costs.h"
#include "daemon/observe/key_values.h"
#include "daemon/observe/session_states.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/publish/publisher.h"
#include "daemon/serve/handoff/exported_rooms.h"
#include "daemon/serve/parse/client_request.h"
#include "daemon/serve/parse/dataset_table.h"
#include "daemon/serve/sessions/reply_socket.h"
#include "daemon/serve/sessions/request_reader.h"
#include "daemon/serve/sessions/session_listings.h"
#include "daemon/serve/sessions/stream_port.h"
#include "daemon/slots/slot_pool.h"
#include "millrace/v1/statistics.pb.h"
#include "proto/base/ids.h"

namespace millrace {

// For the log: "user 1000, pid 4711 ("train")".
std::string who(const Caller& caller, const std::string& name_untrusted);
// Of a refusal: what an operator can do something about, rights and room, is a warning.
LogLevel level_of(const Error& refusal);

// How a stream came to its end: the client said that it is done, or the call broke off.
enum class StreamEnd : std::uint8_t { kByClient, kBroken };

// What a session is charged to by being there.
struct SessionCharges {
  Charge session;
  Charge slots;
  Charge staging;  // of tensors in a device's memory: what the processor makes for them waits in the host's
};

class Session final : private RequestReader::Port {
 public:
  // What it asks for on behalf of its client. All of it outlives the session.
  struct Services {
    Pipeline& pipeline;
    FolderLister& lister;
    RingMaker& rings;
  };
  struct Parts {
    SessionId id{};
    ClientId client{};                     // its hand-off connection
    std::shared_ptr<const Caller> caller;  // shared with the fetch tasks
    std::string name;
    std::string job;  // whose costs it adds to
    std::uint32_t slots = 1;
    Bytes slot_bytes;                     // in the segment
    CacheUse cache = CacheUse::kTensors;  // see SessionParts
    bool cache_at_once = false;
    std::shared_ptr<Segment> segment;    // shared: see SlotPool
    std::shared_ptr<Arena> arena;        // shared: see SessionParts
    std::optional<ExportedTo> exported;  // of a device, where the tensors are in its memory
    std::string memory;                  // where they are, for the log; empty: in the segment
    std::shared_ptr<StopFlag> unwanted;  // shared with the segment's maker; stopped when the session goes
    std::shared_ptr<Account> account;    // shared: see Ledger::account()
    SessionCharges charges;
    std::shared_ptr<SharedListings> listings;  // shared: see SessionListings
    boost::asio::thread_pool& parsing;         // of large requests
    LinesByUser& log;
    JobCosts& jobs;
  };

  Session(Parts parts, boost::asio::io_context& control, const Services& services, Counters& counters,
          InForce<Limits> limits);
  ~Session() override;  // closes it in the pipeline; its stream, if any, is told by the code that destroys it
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  SessionId id() const { return parts_.id; }
  ClientId client() const { return parts_.client; }
  const Caller& caller() const { return *parts_.caller; }
  std::shared_ptr<const Caller> shared_caller() const { return parts_.caller; }
  const std::string& name() const { return parts_.name; }
  const std::string& job() const { return parts_.job; }
  CacheUse cache() const { return parts_.cache; }
  Segment& segment() const { return *parts_.segment; }
  const Arena& arena() const { return *parts_.arena; }
  // What stays exported when it has gone, to the first who asks.
  std::optional<ExportedTo> take_exported() { return std::exchange(parts_.exported, std::nullopt); }
  StreamPort* stream() const { return stream_; }  // null: none, or none any more

  // Messages to its client leave by `socket`, by which its requests may come as well, once it is attached.
  // `sent_descriptor`: is called when one came along, for its client is to go. REQUIRES: once, before attach().
  void reply_by(std::shared_ptr<ReplySocket> socket, std::function<void()> sent_descriptor);

  // kPrecondition: it has, or had, its stream. kUnavailable: its client could not be given a reply socket.
  Result<void> attach(StreamPort& stream);
  void detach(StreamEnd end);  // cancels what is under way; nothing happens without a stream
  void stream_ends();          // no message leaves any more; those sent before still do. Idempotent
  bool ended_by_client() const { return ended_by_client_; }
  // More of its segment is filled, or will never be.
  void grown(SegmentProgress progress);
  // For the log, as programs read it (observe/key_values.h): who it is, and what it asked for; who it was, what it
  // worked on, and what it has had. serve/README.md has the names.
  std::string opening_account() const;
  std::string summary() const;

  // Its input ring: the client's descriptor. kPrecondition: it has one already. Otherwise RingMaker's errors.
  Result<UniqueFd> make_ring(Bytes size_untrusted);

  const std::shared_ptr<Account>& account() const { return parts_.account; }
  void describe(v1::SessionStatistics& statistics) const;
  void name_in_recordings() const;
  // For those who ask why its program waits.
  SessionLook look(SessionStates::Clock::time_point now) const;
  SessionLook first_look() const { return {.at = opened_}; }
  const SessionSigns& signs() const { return *signs_; }
  const SlotPool& slots() const { return slots_; }
  std::uint64_t files_listed() const { return files_listed_; }  // of its datasets so far

 private:
  void act(BatchRequest request, Charge room);
  void act(CancelRequest request);
  void act(ReleaseRequest request);
  void act(OpenDatasetRequest request);
  void act(ListFilesRequest request);
  void act(const NameFilesRequest& request);
  void act(CloseDatasetRequest request);
  void act(EpochRequest request);
  void act(GiveBatchesRequest request);
  void act(StopEpochRequest request);
  void act(RefusedRequest request);

  // RequestReader::Port: what comes by the reply socket.
  void requested(ClientRequest request, Charge room) override;
  void unreadable(const Error& why) override { cut_off(why); }
  void sent_descriptor() override { sent_descriptor_(); }

  void cut_off(const Error& why);
  KeyValues identity() const;
  void add_costs(KeyValues& line) const;
  void describe_states(v1::SessionStatistics& statistics) const;
  void hold(Bytes memory);
  void tell_withdrawn();
  void refuse(const Subject& subject, const Error& error, Bytes slot_bytes = {});
  void drop_list(DatasetId id);
  void listings_changed();
  Result<void> reserve(DatasetId id, std::string_view folder_untrusted);
  void listed(DatasetId id, Result<std::shared_ptr<const Dataset>> dataset);

  Parts parts_;
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  const std::shared_ptr<JobAccount> job_;      // shared with the table of jobs, and with costs_
  const std::shared_ptr<SessionCosts> costs_;  // shared with its batches
  const std::shared_ptr<SessionStates> states_ = std::make_shared<SessionStates>(opened_);  // shared likewise
  const std::shared_ptr<SessionSigns> signs_ = std::make_shared<SessionSigns>();            // shared likewise
  Pipeline& pipeline_;
  RingMaker& rings_;
  Counters& counters_;
  const InForce<Limits> limits_;
  SlotPool slots_;
  Publisher publisher_;
  std::shared_ptr<const InputRing> ring_;  // shared with its batches; null: none yet
  StreamPort* stream_ = nullptr;
  boost::asio::io_context& control_;
  std::shared_ptr<ReplySocket> replies_;     // shared with its own handlers; null: not handed over
  std::shared_ptr<RequestReader> requests_;  // likewise; null: not attached
  std::function<void()> sent_descriptor_;
  SessionListings listings_;
  std::shared_ptr<DatasetTable> datasets_;  // shared with the reader of requests
  std::vector<std::string> folders_;        // of its datasets, the first ones
  std::uint64_t datasets_opened_ = 0, files_listed_ = 0, refused_ = 0;
  Bytes held_;  // memory for tensors, as its costs have it
  bool had_stream_ = false;
  bool ended_by_client_ = false;
};

}  // namespace millrace
