// A gRPC channel to the daemon and the calls that are not part of a session's stream. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/src/wire/address.h"
#include "client/src/wire/deadline.h"
#include "millrace/cache.h"
#include "millrace/findings.h"
#include "millrace/statistics.h"
#include "millrace/v1/session.pb.h"
#include "proto/base/result.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace millrace {
inline namespace client {

class DaemonChannel {
 public:
  // A connection of its own, not shared with other channels of the process: a session's messages then wake its reader
  // and nobody else.
  explicit DaemonChannel(Address address);
  ~DaemonChannel();

  // kUnavailable: cannot_reach(). kExhausted: the daemon has no room for another connection. So do the calls below.
  Result<void> wait_connected(Deadline deadline) const;

  Result<v1::OpenSessionReply> open(const v1::OpenSessionRequest& request, Deadline deadline) const;
  Result<std::chrono::nanoseconds> check_health(Deadline deadline) const;
  Result<Statistics> statistics(Deadline deadline) const;
  Result<std::vector<Device>> devices(Deadline deadline) const;
  // See Client. `ticket`: of a hand-off connection that is open when the call begins.
  Result<std::vector<SessionFindings>> explain(const std::string& ticket, std::uint64_t session, bool history,
                                               Deadline deadline) const;
  Result<DroppedCache> drop_cache(const std::string& ticket, const DropCache& what, Deadline deadline) const;
  Result<VerifiedCache> verify_cache(const std::string& ticket,
                                     const std::function<bool(const VerifiedCache&)>& goes_on,
                                     std::chrono::milliseconds silence) const;

  // Of a call of another service that failed: an unreachable daemon is explained, everything else is what it says.
  Error explain(const grpc::Status& status, const grpc::ClientContext& context) const;

  const Address& address() const { return address_; }
  const std::shared_ptr<grpc::Channel>& grpc() const { return channel_; }  // shared: gRPC's stubs hold it too

 private:
  Address address_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace client
}  // namespace millrace
