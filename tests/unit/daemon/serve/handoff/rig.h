// A hand-off server on a control thread of its own, and a client that may say anything at all to it. For tests.
#pragma once

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/serve/handoff/handoff_server.h"
#include "proto/base/mutex.h"
#include "proto/base/sockets/socket_message.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {

// Remembers what it was told; answers who wants a ring with what the test wants. Thread-safe.
class RecordedEvents final : public HandoffServer::Events {
 public:
  void disconnected(ClientId client, HandoffServer::Departure how) override {
    MutexLock lock(mutex_);
    gone_.push_back(client);
    goodbyes_ += how == HandoffServer::Departure::kGoodbye ? 1 : 0;
  }
  Result<UniqueFd> ring_wanted(ClientId, Bytes size_untrusted) override {
    MutexLock lock(mutex_);
    rings_.push_back(size_untrusted);
    if (!ring_answer_) return ring_answer_.error();
    return UniqueFd(::memfd_create("ring", MFD_CLOEXEC));
  }

  std::size_t gone() const {
    MutexLock lock(mutex_);
    return gone_.size();
  }
  bool only_gone(ClientId client) const {
    MutexLock lock(mutex_);
    return gone_.size() == 1 && gone_.front() == client;
  }
  std::size_t goodbyes() const {  // of those
    MutexLock lock(mutex_);
    return goodbyes_;
  }
  std::size_t rings() const {
    MutexLock lock(mutex_);
    return rings_.size();
  }
  Bytes last_ring() const {
    MutexLock lock(mutex_);
    return rings_.back();
  }
  void answer_rings_with(Result<void> answer) {
    MutexLock lock(mutex_);
    ring_answer_ = std::move(answer);
  }

 private:
  mutable Mutex mutex_;
  std::vector<ClientId> gone_ MILLRACE_GUARDED_BY(mutex_);
  std::size_t goodbyes_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::vector<Bytes> rings_ MILLRACE_GUARDED_BY(mutex_);
  Result<void> ring_answer_ MILLRACE_GUARDED_BY(mutex_);
};

class HandoffRig {
 public:
  explicit HandoffRig(HandoffServer::Options options = {}, Bounds connections = {}) : ledger_(budgets(connections)) {
    options.path = path();
    server_ = *HandoffServer::create(control_, ledger_, std::move(options), counters_, events_);
    thread_ = std::thread([this] { control_.run(); });
  }
  ~HandoffRig() {
    on_control([&] { server_.reset(); });
    work_.reset();
    thread_.join();
  }

  // Runs `call` with the server on the control thread and returns what it returned.
  template <class Call>
  std::invoke_result_t<Call> on_control(Call call) {
    std::packaged_task<std::invoke_result_t<Call>()> task(std::move(call));
    auto future = task.get_future();
    boost::asio::post(control_, [&task] { task(); });
    return future.get();
  }
  std::optional<HandoffServer::Connection> find(const Ticket& ticket) {
    return on_control([&] { return server_->find(ticket); });
  }

  std::string path() const { return folder_ / "millrace.sock.handoff"; }
  HandoffServer& server() { return *server_; }  // on the control thread
  RecordedEvents& events() { return events_; }
  std::int64_t connections() const { return counters_.stored(MetricId::handoff_connections); }

 private:
  static Budgets budgets(Bounds connections) {
    Budgets made;
    made[Resource::kHandoffConnections] = connections;
    return made;
  }

  TempFolder folder_;
  Ledger ledger_;
  boost::asio::io_context control_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{control_.get_executor()};
  Counters counters_;
  RecordedEvents events_;
  std::unique_ptr<HandoffServer> server_;
  std::thread thread_;
};

// Plain system calls, so that a forked child may use it as well.
class RawClient {
 public:
  explicit RawClient(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    const timeval patience{10, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    connected_ = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  bool connected() const { return connected_; }
  void hang_up() { socket_.reset(); }

  bool send(const void* bytes, std::size_t size, const std::vector<int>& descriptors = {}) const {
    const std::span message(static_cast<const std::byte*>(bytes), size);
    return send_message(socket_.get(), message, descriptors) == static_cast<ssize_t>(size);
  }
  bool send(const shm::HandoffRequest& request, const std::vector<int>& descriptors = {}) const {
    return send(&request, sizeof request, descriptors);
  }

  // nullopt: the connection has ended (or nothing came in ten seconds). A descriptor that comes along lies in
  // `descriptor` until the next.
  std::optional<shm::HandoffReply> receive() {
    shm::HandoffReply reply{};
    ReceivedMessage received = receive_message(socket_.get(), std::as_writable_bytes(std::span(&reply, 1)), 2);
    if (received.bytes != static_cast<ssize_t>(sizeof reply)) return std::nullopt;
    descriptor = received.descriptors.empty() ? UniqueFd() : std::move(received.descriptors.front());
    return reply;
  }

  UniqueFd descriptor;

 private:
  UniqueFd socket_;
  bool connected_ = false;
};

inline shm::HandoffRequest handoff_request(shm::RequestKind kind, std::uint64_t ring_bytes = 0) {
  shm::HandoffRequest request{};
  request.magic = shm::kHandoffMagic;
  request.version = shm::kHandoffVersion;
  request.kind = static_cast<std::uint32_t>(kind);
  if (kind == shm::RequestKind::kHello) request.flags = shm::kWantsReplySocket;
  request.ring_bytes = ring_bytes;
  return request;
}

inline Ticket ticket_of(const shm::HandoffReply& reply) {
  Ticket ticket{};
  std::memcpy(ticket.data(), reply.ticket, ticket.size());
  return ticket;
}

}  // namespace millrace
