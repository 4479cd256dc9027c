// A client without libmillrace: it can send what the library would refuse, and stop anywhere. Bytes on the hand-off
// socket (proto/shm/handoff_wire.h) and generated gRPC stubs.
//
//   RawHandoff handoff(socket);             connect
//   handoff.hello();                        now it has a ticket
//   RawSession session(socket, {...});      the whole way: hand-off, Open, Stream, Attach
//
// Every wait is bounded by kRawPatience. A step that should have worked and did not throws std::runtime_error.
// Thread-bound(its owner).
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "millrace/v1/session.grpc.pb.h"
#include "proto/base/unique_fd.h"
#include "proto/shm/handoff_wire.h"
#include "tests/support/host/reply_frames.h"

namespace millrace {

inline constexpr int kRawPatienceSeconds = 30;

class RawHandoff {
 public:
  explicit RawHandoff(const std::string& socket);  // connects to socket + ".handoff"

  void hello();  // sends Hello and takes the Welcome
  const std::string& ticket() const { return ticket_; }

  // One message with `descriptors` attached; false when the daemon has closed the connection.
  bool send(std::span<const std::byte> message, std::span<const int> descriptors = {}) const;

  struct Received {
    bool closed = false;  // the daemon closed the connection
    shm::HandoffReply reply{};
    std::vector<UniqueFd> descriptors;
  };
  Received receive() const;

 private:
  UniqueFd socket_;
  std::string ticket_;
};

std::shared_ptr<grpc::Channel> raw_channel(const std::string& socket);

// Sessions.Open.
grpc::Status raw_open(const std::shared_ptr<grpc::Channel>& channel, const v1::OpenSessionRequest& request,
                      v1::OpenSessionReply& reply);

// A stream that nothing was sent on yet.
class RawStream {
 public:
  explicit RawStream(std::shared_ptr<grpc::Channel> channel);
  ~RawStream();  // cancels it

  bool send(const v1::ClientMessage& message) { return stream_->Write(message); }  // the daemon takes one, Attach
  void attach(const std::string& ticket);                                          // and waits for Attached
  // How the stream ended. REQUIRES: the daemon ends it.
  grpc::Status finish();

 private:
  std::shared_ptr<grpc::Channel> channel_;  // shared with who else talks over it
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::ServerMessage>> stream_;
};

struct RawSessionSpec {
  std::uint32_t slots = 2;
  std::uint64_t slot_bytes = 1 << 20;
  std::string name = "raw";
  std::string memory;  // where the tensors shall lie; empty: in the segment
};

struct RawSession {
  RawSession(const std::string& socket, const RawSessionSpec& spec);

  bool send(const v1::ClientMessage& request) const { return send_request(replies.get(), request); }
  v1::ServerMessage receive() const;  // the next one from the reply socket; throws when that has ended

  RawHandoff handoff;
  std::shared_ptr<grpc::Channel> channel;
  v1::OpenSessionReply opened;
  // Bytes of the device's memory, which the simulated driver shares as an ordinary file.
  std::vector<std::byte> read_tensors(std::uint64_t offset, std::uint64_t bytes) const;

  UniqueFd segment;
  UniqueFd replies;
  std::uint64_t segment_bytes = 0;
  RawHandoff::Received tensors;       // a device's memory: what came after the segment, if it was asked for
  std::unique_ptr<RawStream> stream;  // attached
};

}  // namespace millrace
