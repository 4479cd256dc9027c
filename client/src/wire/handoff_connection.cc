#include "client/src/wire/handoff_connection.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "client/src/wire/unix_socket.h"
#include "proto/base/sockets/handoff_path.h"
#include "proto/base/sockets/socket_message.h"

namespace millrace {
inline namespace client {
namespace {

constexpr std::size_t kDescriptorsSeen = 4;  // the segment, the reply socket; or the ring, or the memory

shm::HandoffRequest request_of(shm::RequestKind kind) {
  shm::HandoffRequest request{};
  request.magic = shm::kHandoffMagic;
  request.version = shm::kHandoffVersion;
  request.kind = static_cast<std::uint32_t>(kind);
  return request;
}

Error socket_error(std::string_view doing, int error) {
  if (error == EAGAIN || error == EWOULDBLOCK)
    return Error{Code::kDeadline, std::string(doing) + ": the daemon did not answer in time"};
  return Error{Code::kUnavailable, errno_error(doing, error).message};
}

Error no_descriptor() {
  return Error{Code::kInternal,
               "hand-off: the daemon's message lacks a descriptor (is this process out of them? ulimit -n)"};
}

Code checked_code(std::uint32_t code) {
  const bool known =
      code >= static_cast<std::uint32_t>(Code::kInvalid) && code <= static_cast<std::uint32_t>(Code::kInternal);
  return known ? static_cast<Code>(code) : Code::kInternal;
}

}  // namespace

Result<HandoffConnection> HandoffConnection::open(const Address& address, Deadline deadline) {
  const std::string path = handoff_path(address.path);
  auto socket = connect_unix(path, SOCK_SEQPACKET, deadline);
  if (!socket) return cannot_reach(Address{path}, socket.error().code, socket.error().message);
  HandoffConnection connection(*std::move(socket));
  shm::HandoffRequest hello = request_of(shm::RequestKind::kHello);
  hello.flags = shm::kWantsReplySocket;
  MILLRACE_TRY_VOID(connection.send(hello, deadline));
  const auto reply = connection.receive(shm::ReplyKind::kWelcome, nullptr, deadline);
  if (!reply && reply.error().code == Code::kDeadline) return no_answer(address, "no answer in time");
  MILLRACE_TRY(const shm::HandoffReply welcome, reply);
  connection.ticket_.assign(reinterpret_cast<const char*>(welcome.ticket), sizeof welcome.ticket);
  return connection;
}

Result<HandoffConnection::ReceivedSegment> HandoffConnection::receive_segment(Deadline deadline) {
  std::vector<UniqueFd> descriptors;
  MILLRACE_TRY(const shm::HandoffReply reply, receive(shm::ReplyKind::kSegment, &descriptors, deadline));
  if (descriptors.size() < 2) return no_descriptor();
  return ReceivedSegment{std::move(descriptors[0]), Bytes{reply.segment_bytes}, std::move(descriptors[1])};
}

Result<HandoffConnection::ReceivedMemory> HandoffConnection::receive_memory(Deadline deadline) {
  std::vector<UniqueFd> descriptors;
  MILLRACE_TRY(const shm::HandoffReply reply, receive(shm::ReplyKind::kMemory, &descriptors, deadline));
  if (descriptors.empty()) return no_descriptor();
  ReceivedMemory memory{.fd = std::move(descriptors[0]), .size = Bytes{reply.segment_bytes}};
  static_assert(sizeof reply.ticket == sizeof memory.device);
  std::memcpy(memory.device.data(), reply.ticket, sizeof reply.ticket);
  return memory;
}

Result<UniqueFd> HandoffConnection::request_ring(Bytes size, Deadline deadline) {
  shm::HandoffRequest request = request_of(shm::RequestKind::kRingRequest);
  request.ring_bytes = size.count;
  MILLRACE_TRY_VOID(send(request, deadline));
  std::vector<UniqueFd> descriptors;
  MILLRACE_TRY(const shm::HandoffReply reply, receive(shm::ReplyKind::kRing, &descriptors, deadline));
  if (descriptors.empty()) return no_descriptor();
  if (reply.segment_bytes != size.count)
    return Error{Code::kInternal, "hand-off: a ring of " + to_text(Bytes{reply.segment_bytes}) + " came, " +
                                      to_text(size) + " were asked for"};
  return std::move(descriptors[0]);
}

bool HandoffConnection::has_ended() const {
  std::byte byte{};
  const ssize_t got = ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

void HandoffConnection::say_goodbye() noexcept {
  if (!socket_ || said_goodbye_ || ::getpid() != pid_) return;
  said_goodbye_ = true;
  tell(shm::RequestKind::kGoodbye);
}

void HandoffConnection::let_go() noexcept {
  if (socket_ && ::getpid() == pid_) tell(shm::RequestKind::kLetGo);
}

// A daemon that takes no more, or is gone, need not hear it.
void HandoffConnection::tell(shm::RequestKind kind) noexcept {
  const shm::HandoffRequest word = request_of(kind);
  static_cast<void>(send_message(socket_.get(), std::as_bytes(std::span(&word, 1)), {}, MSG_DONTWAIT));
}

Result<void> HandoffConnection::send(const shm::HandoffRequest& request, Deadline deadline) {
  ssize_t sent = -1;
  do {
    set_timeouts(socket_.get(), deadline);
    sent = send_message(socket_.get(), std::as_bytes(std::span(&request, 1)), {});
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return socket_error("hand-off: sending", errno);
  return {};
}

Result<shm::HandoffReply> HandoffConnection::receive(shm::ReplyKind expected, std::vector<UniqueFd>* descriptors,
                                                     Deadline deadline) {
  shm::HandoffReply reply{};
  ReceivedMessage received;
  do {
    set_timeouts(socket_.get(), deadline);
    received = receive_message(socket_.get(), std::as_writable_bytes(std::span(&reply, 1)), kDescriptorsSeen);
  } while (received.bytes < 0 && errno == EINTR);
  if (received.bytes < 0) return socket_error("hand-off: receiving", errno);
  if (received.bytes == 0)
    return Error{Code::kUnavailable, "hand-off: the daemon closed the connection; it may be stopping, try again"};
  if (received.bytes != sizeof reply || reply.magic != shm::kHandoffMagic)
    return Error{Code::kPrecondition,
                 "hand-off: this is not a Millrace daemon's socket, or one of a version that does not fit; "
                 "install libmillrace and millraced of the same version"};
  if (reply.version != shm::kHandoffVersion)
    return Error{Code::kPrecondition, "hand-off: the daemon speaks version " + std::to_string(reply.version) +
                                          ", this library version " + std::to_string(shm::kHandoffVersion) +
                                          "; install libmillrace and millraced of the same version"};
  if (reply.kind == static_cast<std::uint32_t>(shm::ReplyKind::kRefused))
    return Error{checked_code(reply.code), std::string(reply.message, ::strnlen(reply.message, sizeof reply.message))};
  if (reply.kind != static_cast<std::uint32_t>(expected))
    return Error{Code::kInternal, "hand-off: an answer of kind " + std::to_string(reply.kind) + " came out of turn"};
  if (descriptors != nullptr) *descriptors = std::move(received.descriptors);
  return reply;
}

}  // namespace client
}  // namespace millrace
