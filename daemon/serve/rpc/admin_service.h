// The service Admin: what administrators order of the daemon as a whole. Who is asking is found out here; what happens,
// DaemonOrders decide.
//
//   gRPC's thread ──post──▶ control thread: who is asking? ──▶ DaemonOrders, SessionTable, Ledger ──▶ the answer
//
// Thread-bound(control), but for the calls themselves, which gRPC makes.
#pragma once

#include <chrono>
#include <string>

#include "daemon/admit/ledger.h"
#include "daemon/serve/rpc/daemon_orders.h"
#include "daemon/serve/rpc/grpc_stream.h"
#include "millrace/v1/admin.grpc.pb.h"

namespace millrace {

class AdminService final : public v1::Admin::CallbackService {
 public:
  // What stays as it was at the start.
  struct About {
    std::string version;
    std::string settings_file;  // empty: none
  };

  // `around`, `orders` and `ledger` outlive this.
  AdminService(StreamSurroundings& around, DaemonOrders& orders, const Ledger& ledger, About about)
      : around_(around), orders_(orders), ledger_(ledger), about_(std::move(about)) {}

  grpc::ServerUnaryReactor* Reload(grpc::CallbackServerContext* call, const v1::ReloadRequest* request_untrusted,
                                   v1::ReloadReply* reply) override;
  grpc::ServerWriteReactor<v1::DrainProgress>* Drain(grpc::CallbackServerContext* call,
                                                     const v1::DrainRequest* request_untrusted) override;
  grpc::ServerUnaryReactor* Resume(grpc::CallbackServerContext* call, const v1::ResumeRequest* request_untrusted,
                                   v1::ResumeReply* reply) override;
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* call, const v1::AdminStatusRequest* request_untrusted,
                                   v1::AdminStatusReply* reply) override;
  grpc::ServerUnaryReactor* CloseSession(grpc::CallbackServerContext* call,
                                         const v1::CloseSessionRequest* request_untrusted,
                                         v1::CloseSessionReply* reply) override;

 private:
  class Telling;

  void describe(const Result<FileReading>& reading, v1::AdminStatusReply& reply) const;

  StreamSurroundings& around_;
  DaemonOrders& orders_;
  const Ledger& ledger_;
  const About about_;
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace millrace
