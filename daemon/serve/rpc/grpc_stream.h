// One call of Sessions.Stream: it begins a session with Attach and its answer, and its status says why the session has
// ended. Requests and their results go by the session's reply socket; a second message ends the stream. gRPC's threads
// parse Attach and post; everything else is on the control thread.
//
//   begun ──Attach──▶ attached ──client ends, finish()──▶ finishing ──Attached is written──▶ finished ──OnDone──▶ deleted
//     └─no Attach in time, refused, one too many, stop──────▲
//
// Owned by gRPC from its creation until OnDone, then by the posting that deletes it. Thread-bound(control), but for the
// reactions (On...), which gRPC calls.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/server_callback.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <unordered_set>

#include "daemon/model/in_force.h"
#include "daemon/serve/rpc/unattached_streams.h"
#include "daemon/serve/sessions/session_table.h"
#include "daemon/serve/sessions/stream_port.h"
#include "daemon/settings/admins.h"

namespace millrace {

class GrpcStream;

// The status for an error of SessionTable::open() or attach(), where kDenied means a ticket that is not known:
// UNAUTHENTICATED.
grpc::Status ticket_status(const Error& error);
// The same as the answer of `call`, which then tells a UNAVAILABLE of ours from gRPC's.
grpc::Status answer_with(const Error& error, grpc::CallbackServerContext& call);

// What all streams share; outlives them. Thread-bound(control) but for the constants.
struct StreamSurroundings {
  boost::asio::io_context& control;
  SessionTable& sessions;
  const InForce<Limits> limits;
  const std::chrono::milliseconds attach_within;
  std::unordered_set<GrpcStream*> open;
  UnattachedStreams unattached;
  Admins admins;
  std::optional<Error> refusal;  // set: new sessions and streams get this, for the daemon drains or stops
  bool stopping = false;         // administrators, too
};

// Reads and writes bytes, so that what is no message ends the stream with a status that says so: gRPC's own parsing
// would make it look like the client's end.
class GrpcStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>, public StreamPort {
 public:
  // gRPC's threads. `call` outlives OnDone().
  GrpcStream(StreamSurroundings& surroundings, grpc::CallbackServerContext& call);

  void finish(const Error& reason) override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  void begin();
  void wait_for_attach();
  void attach(const v1::ClientMessage& message_untrusted);
  void read();
  void refuse_second();
  void read_ended();
  void write_attached();
  void written();
  void end(grpc::Status status);
  void finish_call();
  void limit_writing();
  void leave();

  StreamSurroundings& around_;
  grpc::CallbackServerContext& call_;
  const std::optional<Ticket> ticket_untrusted_;  // of the call's metadata; Attach is what counts
  grpc::ByteBuffer incoming_;                     // gRPC's while a read is under way
  bool has_read_ = false;                         // the first message: the reactions' own, one at a time
  std::optional<SessionId> session_;
  boost::asio::steady_timer patience_;  // for Attach, later for writing Attached

  grpc::ByteBuffer outgoing_;  // Attached; gRPC's while it is written
  bool writing_ = false;
  std::optional<grpc::Status> status_;  // set: finishing
};

}  // namespace millrace
