// Statistics.Trace, for `millrace trace` and `millrace run --trace`: who is asking is told by a hand-off connection that
// lasts as long as this. Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/src/wire/daemon_channel.h"
#include "client/src/wire/handoff_connection.h"
#include "millrace/v1/statistics.grpc.pb.h"
#include "proto/base/result.h"

namespace millrace::cli {

class TraceCall {
 public:
  // `socket`: as Client::connect() takes it. kUnavailable: nobody answers there; says how to start it.
  static Result<TraceCall> connect(const std::string& socket);

  struct Order {
    double seconds = 0;
    std::uint64_t session = 0;  // 0: all that this user may see
  };
  struct Taker {
    std::function<Result<void>(const std::string& packets)> take;  // its error ends the recording
    std::function<bool()> goes_on;                                 // asked several times a second; false ends it
  };
  // Returns once it has ended. kDenied: it is another user's. kUnsupported: the daemon is older. Others:
  // statistics.proto.
  Result<void> record(const Order& order, const Taker& taker);

 private:
  TraceCall(DaemonChannel channel, HandoffConnection handoff);

  DaemonChannel channel_;
  HandoffConnection handoff_;
  std::unique_ptr<v1::Statistics::Stub> stub_;
};

}  // namespace millrace::cli
