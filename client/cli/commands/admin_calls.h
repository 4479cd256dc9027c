// The service Admin, for `millrace admin`: who is asking is told by a hand-off connection that lasts as long as this.
// Thread-bound(its owner).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/src/wire/daemon_channel.h"
#include "client/src/wire/handoff_connection.h"
#include "millrace/v1/admin.grpc.pb.h"
#include "proto/base/result.h"

namespace millrace::cli {

class AdminCalls {
 public:
  // `socket`: as Client::connect() takes it. kUnavailable: nobody answers there; says how to start it.
  static Result<AdminCalls> connect(const std::string& socket);

  // kDenied: not for this user; says whose it is. kUnsupported: the daemon is older. Others: admin.proto.
  Result<v1::ReloadReply> reload();
  Result<v1::ResumeReply> resume();
  Result<v1::AdminStatusReply> status();
  Result<v1::CloseSessionReply> close_session(std::uint64_t id);
  // The last that it told. `goes_on` is called several times a second; false from it ends the telling: kCancelled.
  Result<v1::DrainProgress> drain(bool stop, const std::function<bool(const v1::DrainProgress&)>& goes_on);

 private:
  AdminCalls(DaemonChannel channel, HandoffConnection handoff);

  template <class Reply, class Request, class Call>
  Result<Reply> ask(Request request, Call call);
  Error explain(const grpc::Status& status, const grpc::ClientContext& context) const;

  DaemonChannel channel_;
  HandoffConnection handoff_;
  std::unique_ptr<v1::Admin::Stub> stub_;
};

}  // namespace millrace::cli
