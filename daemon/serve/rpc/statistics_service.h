// The service Statistics: figures, why sessions wait, and recordings. Thread-bound(control), but for what gRPC calls.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <vector>

#include "daemon/observe/descriptors.h"
#include "daemon/serve/rpc/explaining.h"
#include "daemon/serve/rpc/grpc_server.h"
#include "daemon/serve/rpc/grpc_stream.h"
#include "daemon/serve/rpc/trace_calls.h"
#include "millrace/v1/statistics.grpc.pb.h"
#include "proto/base/error.h"

namespace millrace {

// However many ask, the control thread adds the figures up 100 times a second at most: those who come too soon wait, and
// get what is true then. Who asks why programs wait is answered in a fifth of the thread's time, one after the other.
class StatisticsService final : public v1::Statistics::CallbackService {
 public:
  // All outlives it.
  StatisticsService(const GrpcServer::Parts& parts, const GrpcServer::Options& options, StreamSurroundings& around,
                    Explaining& explaining);

  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* call, const v1::GetStatisticsRequest* request_untrusted,
                                v1::GetStatisticsReply* reply) override;
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* call, const v1::ExplainRequest* request_untrusted,
                                    v1::ExplainReply* reply) override;
  grpc::ServerWriteReactor<v1::TracePart>* Trace(grpc::CallbackServerContext* call,
                                                 const v1::TraceRequest* request_untrusted) override;

  void end_recordings(const Error& why) { recordings_.end_all(why); }

 private:
  using Clock = std::chrono::steady_clock;

  struct Asked {
    grpc::ServerUnaryReactor* call;
    v1::GetStatisticsReply* reply;
  };

  struct Why {
    grpc::ServerUnaryReactor* call;
    grpc::CallbackServerContext* context;
    const v1::ExplainRequest* request_untrusted;
    v1::ExplainReply* reply;
  };

  void ask(Asked asked);
  void answer_all();
  void add_up(v1::GetStatisticsReply& reply) const;
  void ask_why(Why why);
  void explain_when_due();

  const GrpcServer::Parts parts_;
  const GrpcServer::Options& options_;
  Explaining& explaining_;
  const Clock::time_point since_ = Clock::now();
  DescriptorCount descriptors_;
  boost::asio::steady_timer later_;
  Clock::time_point last_{};
  std::vector<Asked> asked_;  // since the last answer
  boost::asio::steady_timer why_later_;
  Clock::time_point why_due_{};
  std::deque<Why> why_asked_;  // bounded by connections and their streams
  TraceCalls recordings_;
};

}  // namespace millrace
