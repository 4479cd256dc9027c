// A session's messages on their way to its client: length-prefixed, down one end of a socket pair whose other end the
// client got with its segment (proto/shm/handoff_wire.h has the bytes). One send() into the client's buffer is all that
// lies between a sealed slot and the client's poll(); daemon/doc/adr/0006 has why.
//
// What the client's buffer has no room for waits here, up to kMaxUnread; beyond a little it is charged to its session.
//
// Thread-bound(control). Held by a shared_ptr, because a handler that waits for room holds it weakly.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/admit/ledger.h"
#include "daemon/publish/message_port.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class ReplySocket final : public MessagePort, public std::enable_shared_from_this<ReplySocket> {
 public:
  static constexpr Bytes kMaxUnread = 8_MiB;

  // `socket`: a connected SOCK_STREAM socket, which is only written to here. kExhausted, kInternal: the kernel cannot watch
  // it. `account`: whose client it is; null: what waits is not counted.
  static Result<std::shared_ptr<ReplySocket>> create(boost::asio::io_context& control, UniqueFd socket,
                                                     std::shared_ptr<Account> account = nullptr);

  void send(v1::ServerMessage message) override;
  void send_early_wake_up() override;

  std::size_t unsent() const { return unwritten_.size() - written_; }  // bytes that wait for room

  // Called once, from the event loop, when the client can be sent nothing any more. kExhausted: it leaves too much
  // unread. kPrecondition: it has closed its end, or is gone.
  void on_lost(std::function<void(const Error&)> report) { on_lost_ = std::move(report); }

  // The other way, for the reader of what the client says. `ready` is called once, from the event loop, when there is
  // something, or the client's end; never once this has closed.
  void when_readable(std::function<void()> ready);
  int descriptor() { return socket_.native_handle(); }  // -1 once it has closed
  // Likewise, when more of the socket is shut than before.
  void when_hung_up(std::function<void()> look);
  // The error, if the client has closed its end, or is gone: both ways are shut. A half-close for writing is not that.
  std::optional<Error> closed_by_client();

  // Closes after what was sent. Idempotent.
  void finish();

 private:
  ReplySocket(boost::asio::io_context& control, std::shared_ptr<Account> account)
      : control_(control), socket_(control), account_(std::move(account)) {}
  Result<void> charge();
  void let_go();
  void write_some();
  void wait_for_room();
  void give_up(const Error& why);
  void close();

  boost::asio::io_context& control_;
  boost::asio::posix::stream_descriptor socket_;
  const std::shared_ptr<Account> account_;  // shared: see Ledger::account()
  Charge room_;                             // for what waits
  std::string unwritten_;                   // from written_ on
  std::size_t written_ = 0;
  bool waiting_ = false;
  bool finishing_ = false;
  std::function<void(const Error&)> on_lost_;
};

}  // namespace millrace
