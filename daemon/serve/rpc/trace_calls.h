// Calls of Statistics.Trace: who may have what recorded, and its parts on their way to him.
//
//   gRPC's thread ──post──▶ control: who asks? ──▶ Recorder ── part by part ──▶ control ──▶ the client, as he reads
//
// Thread-bound(control), but for begin(), which gRPC calls.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <unordered_set>

#include "daemon/admit/ledger.h"
#include "daemon/observe/counters.h"
#include "daemon/observe/trace/recorder.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/serve/rpc/grpc_stream.h"
#include "millrace/v1/statistics.pb.h"
#include "proto/base/error.h"

namespace millrace {

class TraceCalls {
 public:
  // All outlives this.
  TraceCalls(StreamSurroundings& around, const Pipeline& pipeline, Ledger& ledger, const Counters& counters);

  grpc::ServerWriteReactor<v1::TracePart>* begin(grpc::CallbackServerContext& call,
                                                 const v1::TraceRequest& request_untrusted);
  // Every recording ends: its client gets what there is, and `why`.
  void end_all(const Error& why);

 private:
  class Call;

  Result<trace::Scope> scope_of(const Caller& caller, SessionId session_untrusted);
  void name_sessions() const;
  void record_states_again();

  StreamSurroundings& around_;
  const Pipeline& pipeline_;
  Ledger& ledger_;
  trace::Recorder recorder_;
  std::unordered_set<Call*> open_;
  boost::asio::steady_timer later_;
  std::chrono::steady_clock::time_point states_recorded_{};  // again, for somebody who lost some
  bool states_are_due_ = false;
};

}  // namespace millrace
