#include "tests/system/support/raw_session.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "proto/base/sockets/handoff_path.h"
#include "proto/base/sockets/socket_message.h"
#include "tests/support/host/reply_frames.h"

namespace millrace {
namespace {

UniqueFd connect_to(const std::string& path) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!socket || path.size() >= sizeof address.sun_path) throw std::runtime_error("no socket for " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const timeval patience{kRawPatienceSeconds, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("connecting to " + path + ": " + std::strerror(errno));
  return socket;
}

constexpr std::size_t kDescriptorsSeen = 8;

std::chrono::system_clock::time_point patience() {
  return std::chrono::system_clock::now() + std::chrono::seconds(kRawPatienceSeconds);
}

}  // namespace

RawHandoff::RawHandoff(const std::string& socket) : socket_(connect_to(handoff_path(socket))) {}

void RawHandoff::hello() {
  shm::HandoffRequest request{};
  request.magic = shm::kHandoffMagic;
  request.version = shm::kHandoffVersion;
  request.kind = static_cast<std::uint32_t>(shm::RequestKind::kHello);
  request.flags = shm::kWantsReplySocket;
  if (!send(std::as_bytes(std::span(&request, 1)))) throw std::runtime_error("the daemon does not take a Hello");
  const Received welcome = receive();
  if (welcome.closed || welcome.reply.kind != static_cast<std::uint32_t>(shm::ReplyKind::kWelcome))
    throw std::runtime_error(std::string("no welcome: ") + welcome.reply.message);
  ticket_.assign(reinterpret_cast<const char*>(welcome.reply.ticket), shm::kTicketBytes);
}

bool RawHandoff::send(std::span<const std::byte> message, std::span<const int> descriptors) const {
  return send_message(socket_.get(), message, descriptors) == static_cast<ssize_t>(message.size());
}

RawHandoff::Received RawHandoff::receive() const {
  Received received;
  ReceivedMessage message =
      receive_message(socket_.get(), std::as_writable_bytes(std::span(&received.reply, 1)), kDescriptorsSeen);
  const ssize_t count = message.bytes;
  if (count < 0 && errno != ECONNRESET) throw std::runtime_error(std::string("hand-off: ") + std::strerror(errno));
  received.closed = count <= 0;
  if (!received.closed && count != sizeof received.reply)
    throw std::runtime_error("hand-off: an answer of a wrong size");
  received.descriptors = std::move(message.descriptors);
  return received;
}

std::shared_ptr<grpc::Channel> raw_channel(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

grpc::Status raw_open(const std::shared_ptr<grpc::Channel>& channel, const v1::OpenSessionRequest& request,
                      v1::OpenSessionReply& reply) {
  grpc::ClientContext context;
  context.set_deadline(patience());
  return v1::Sessions::NewStub(channel)->Open(&context, request, &reply);
}

RawStream::RawStream(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {
  context_.set_deadline(patience());
  stream_ = v1::Sessions::NewStub(channel_)->Stream(&context_);
}

RawStream::~RawStream() {
  context_.TryCancel();
  v1::ServerMessage ignored;
  while (stream_ && stream_->Read(&ignored)) {
  }
  if (stream_) stream_->Finish();
}

void RawStream::attach(const std::string& ticket) {
  v1::ClientMessage message;
  message.mutable_attach()->set_ticket(ticket);
  stream_->Write(message);
  v1::ServerMessage answer;
  if (!stream_->Read(&answer)) throw std::runtime_error("the stream has ended: " + finish().error_message());
  if (!answer.has_attached()) throw std::runtime_error("the stream is not attached");
}

grpc::Status RawStream::finish() {
  v1::ServerMessage ignored;
  while (stream_->Read(&ignored)) {
  }
  const grpc::Status status = stream_->Finish();
  stream_.reset();
  return status;
}

RawSession::RawSession(const std::string& socket, const RawSessionSpec& spec)
    : handoff(socket), channel(raw_channel(socket)) {
  handoff.hello();
  v1::OpenSessionRequest request;
  request.set_ticket(handoff.ticket());
  request.set_name(spec.name);
  request.set_slots(spec.slots);
  request.set_slot_bytes(spec.slot_bytes);
  request.set_memory(spec.memory);
  const grpc::Status status = raw_open(channel, request, opened);
  if (!status.ok()) throw std::runtime_error("opening a session: " + status.error_message());
  RawHandoff::Received received = handoff.receive();
  if (received.descriptors.size() != 2) throw std::runtime_error("opening a session: no two descriptors came");
  segment = std::move(received.descriptors[0]);
  replies = std::move(received.descriptors[1]);
  segment_bytes = received.reply.segment_bytes;
  if (!spec.memory.empty()) {
    tensors = handoff.receive();
    if (tensors.reply.kind != static_cast<std::uint32_t>(shm::ReplyKind::kMemory) || tensors.descriptors.size() != 1)
      throw std::runtime_error("opening a session: no memory came");
  }

  stream = std::make_unique<RawStream>(channel);
  stream->attach(handoff.ticket());
}

v1::ServerMessage RawSession::receive() const {
  auto message = read_reply(replies.get());
  if (!message) throw std::runtime_error("the reply socket has ended");
  return *std::move(message);
}

std::vector<std::byte> RawSession::read_tensors(std::uint64_t offset, std::uint64_t bytes) const {
  std::vector<std::byte> read(bytes);
  if (::pread(tensors.descriptors.at(0).get(), read.data(), bytes, static_cast<off_t>(offset)) !=
      static_cast<ssize_t>(bytes))
    throw std::runtime_error("the tensors' memory is shorter than it should be");
  return read;
}

}  // namespace millrace
