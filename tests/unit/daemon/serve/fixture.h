// The daemon's front in one process: real sockets, sessions, memory and pipeline; files and lanes are stood in for, so
// that a test says when a sample is fetched. And a client of it, message by message. Thread-bound(the test).
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/fetch/fetcher.h"
#include "daemon/memory/segment_maker.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/serve/rpc/grpc_server.h"
#include "daemon/serve/sessions/session_table.h"
#include "millrace/v1/device.grpc.pb.h"
#include "millrace/v1/session.grpc.pb.h"
#include "millrace/v1/statistics.grpc.pb.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"
#include "proto/shm/handoff_wire.h"
#include "tests/support/host/reply_frames.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {

// Every sample is an 8x8 JPEG by its header, but those whose path holds "bad". Held: nothing comes back until let_go().
class StandInFetcher final : public Fetcher {
 public:
  ~StandInFetcher() override { let_go(); }

  bool try_fetch(FetchTask&& task) override MILLRACE_EXCLUDES(mutex_);
  bool try_list(ListTask&& task) override MILLRACE_EXCLUDES(mutex_);
  std::vector<std::string> missing_roots() const override { return {}; }
  Result<RootFolders> open_roots(const std::vector<std::string>&) const override { return RootFolders(); }
  Result<void> tell_opener() const override { return {}; }
  void use_roots(RootFolders) override {}

  void hold() MILLRACE_EXCLUDES(mutex_);
  void let_go() MILLRACE_EXCLUDES(mutex_);
  bool holds_stopped_work() MILLRACE_EXCLUDES(mutex_);  // files that are wanted no more, and no others

 private:
  Mutex mutex_;
  bool held_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::vector<FetchTask> fetches_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<ListTask> listings_ MILLRACE_GUARDED_BY(mutex_);
};

struct FrontSetup {
  Limits limits;
  Bytes segments = 64_MiB;
  // A loaded machine takes long: who tests them sets them.
  std::chrono::milliseconds attach_within{300'000};
  std::chrono::milliseconds session_within{300'000};
  CacheOrders* cache = nullptr;
  std::optional<uid_t> cache_owner{};
};

class Front {
 public:
  explicit Front(FrontSetup setup = {});
  ~Front();

  const std::string& socket() const { return socket_; }
  StandInFetcher& fetcher() { return fetcher_; }
  Counters& counters() { return counters_; }
  Bytes memory_in_use() const { return {ledger_.in_use(Resource::kSegments)}; }
  Ledger& ledger() { return ledger_; }
  void refuse_opening();                               // as SIGTERM does at once
  void shut_down(std::chrono::milliseconds patience);  // as SIGTERM does after the drain

 private:
  TempFolder folder_;
  std::string socket_;
  Ledger ledger_;
  PromisedMemory promised_;
  Counters counters_;
  StandInFetcher fetcher_;
  boost::asio::io_context control_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{control_.get_executor()};
  std::unique_ptr<SegmentMaker> maker_;
  std::unique_ptr<Copier> copier_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<SessionTable> sessions_;
  std::unique_ptr<GrpcServer> grpc_;
  std::thread thread_;
  bool shut_down_ = false;
};

struct RawRing {
  shm::HandoffReply reply{};
  UniqueFd descriptor;  // none if the daemon refuses
};

// One hand-off connection, and the session that hangs on it. Failing steps fail the test.
class RawClient {
 public:
  explicit RawClient(const std::string& socket);  // connects and is welcomed

  const std::string& ticket() const { return ticket_; }
  v1::Sessions::Stub& sessions() { return *sessions_; }
  std::shared_ptr<grpc::Channel> channel() const { return channel_; }

  v1::OpenSessionRequest open_request(std::uint32_t slots = 2) const;
  grpc::Status open(const v1::OpenSessionRequest& request);  // and takes the descriptors if it went well
  grpc::Status open_with_slots_later(const v1::OpenSessionRequest& request);  // the same, and says that it can do so
  void open() { open_or_fail(2); }
  void open_or_fail(std::uint32_t slots);

  void attach();  // opens the stream and attaches it
  void start_stream();
  void start_stream_with_ticket();  // in the call's metadata
  void send_attach();               // and reads Attached
  // By the reply socket once it is attached, else by the stream.
  bool send(const v1::ClientMessage& message);
  bool send_by_stream(const v1::ClientMessage& message) { return stream_->Write(message); }
  std::optional<v1::ServerMessage> read();  // nullopt: the reply socket has ended
  grpc::Status finish();                    // what the stream ended with
  void say_done() { stream_->WritesDone(); }

  shm::HandoffReply receive(std::vector<UniqueFd>* descriptors);  // from the hand-off socket
  int replies() const { return replies_.get(); }                  // the reply socket, once open
  void close_replies() { replies_.reset(); }
  void hang_up() { handoff_.reset(); }
  RawRing ask_for_ring(std::uint64_t size);
  int handoff() const { return handoff_.get(); }
  int segment() const { return segment_.get(); }
  v1::GetStatisticsReply statistics();

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Sessions::Stub> sessions_;
  std::unique_ptr<v1::Statistics::Stub> statistics_;
  UniqueFd handoff_;
  UniqueFd segment_;
  UniqueFd replies_;
  grpc::Status open(const v1::OpenSessionRequest& request, grpc::ClientContext& call);

  std::string ticket_;
  bool attached_ = false;
  std::unique_ptr<grpc::ClientContext> call_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::ServerMessage>> stream_;
};

v1::ClientMessage attach_message(const std::string& ticket);
v1::ClientMessage submit_message(std::uint64_t batch, const std::vector<std::string>& paths);
v1::ClientMessage release_message(const v1::TensorHandle& handle);

}  // namespace millrace
