// Statistics.Explain: why sessions' programs wait. A look a second is taken at every session and at the daemon, and the
// last ones are kept (observe/explain/history.h); from the oldest kept and one taken now the findings are made
// (observe/explain/causes.h).
//
// Memory: 12 KiB a session, of kMostKept sessions; what is asked of later ones is explained over their whole life.
// Thread-bound(control).
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/model/backend_info.h"
#include "daemon/observe/counters.h"
#include "daemon/observe/explain/causes.h"
#include "daemon/observe/explain/history.h"
#include "daemon/observe/explain/host_reader.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/serve/rpc/grpc_stream.h"
#include "millrace/v1/statistics.pb.h"

namespace millrace {

class Explaining {
 public:
  static constexpr std::size_t kMostKept = 128;  // sessions: 1.5 MiB

  struct Settings {
    Bytes cache_memory{};
    std::function<std::vector<std::string>()> missing_roots;  // empty: all are there
  };

  // All that is passed by reference outlives it.
  Explaining(const StreamSurroundings& around, const Pipeline& pipeline, const Counters& counters, const Ledger& ledger,
             Settings settings);

  void start();  // looking, once a second
  void stop();

  // NOT_FOUND: there is no such session. UNAUTHENTICATED: no such ticket.
  grpc::Status answer(const v1::ExplainRequest& request_untrusted, v1::ExplainReply& reply);

 private:
  using Clock = SessionStates::Clock;

  struct Kept {
    SessionHistory history;
    Clock::time_point explained_at{};  // `explained` is of then, and good for a moment
    Explained explained{};
  };

  void look_later();
  void look();
  DaemonLook daemon_look(Clock::time_point now);
  void answer(const Session& session, bool history, bool paths, v1::SessionFindings& findings);
  Explained explain_now(const Session& session, const SessionLook& then) const;
  Circumstances circumstances_of(const Session& session) const;
  void count_users();

  const StreamSurroundings& around_;
  const Pipeline& pipeline_;
  const Counters& counters_;
  const Ledger& ledger_;
  const Settings settings_;
  const std::vector<BackendInfo> backends_;
  boost::asio::steady_timer next_;
  HostReader host_;
  LastLooks<DaemonLook> daemon_;
  DaemonLook newest_;             // of when somebody asked last
  std::vector<OtherUser> users_;  // who had sessions then; the one who may have most first
  std::map<SessionId, Kept> kept_;
};

}  // namespace millrace
