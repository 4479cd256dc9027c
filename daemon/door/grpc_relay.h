// One connection between its client and gRPC: bytes go both ways through here, and the client's through Http2Frames
// first. gRPC has one end of a pair of sockets.
//
//   client ─▶ recv ─▶ Http2Frames ─▶ charge ─▶ send ─▶ gRPC        stops while gRPC takes nothing, or by FrameMeter
//   client ◀─ send ◀────────────────────────── recv ◀─ gRPC        stops while the client reads nothing
//
// What gRPC keeps of messages is charged to the user's memory for requests, beyond HeldByUser::kUncharged. Where that is
// refused, or the client goes beyond a bound of Http2Frames, it is told why by a GOAWAY and the connection ends. Gone is a
// connection only when gRPC has closed its end.
//
// Thread-bound(the io_context's thread): calls, and what it reports.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/door/frame_meter.h"
#include "daemon/door/http2_frames.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

// What gRPC keeps of all of a user's connections. Thread-bound(the io_context's thread).
class HeldByUser {
 public:
  // So much costs nothing: two of the largest messages. So a request finds its way though the user's batches have all of
  // his memory for requests, and is refused in its own name.
  static constexpr std::uint64_t kUncharged = 8 << 20;

  explicit HeldByUser(std::shared_ptr<Account> account) : account_(std::move(account)) {}

  UserId user() const { return account_->owner().user; }
  // One of his connections had `before` and has `now`. kExhausted: there is no room for it; it counts all the same, and the
  // connection has to end.
  Result<void> change(std::uint64_t before, std::uint64_t now);

 private:
  static constexpr std::uint64_t kStep = 64 << 10;  // that it is charged in

  const std::shared_ptr<Account> account_;  // shared: see Ledger::account()
  std::uint64_t held_ = 0;
  Charge charge_;
};

class GrpcRelay : public std::enable_shared_from_this<GrpcRelay> {
 public:
  // What it reads at a time, and so the most that it keeps of what the other side has not taken yet.
  static constexpr std::size_t kAtOnce = 64 << 10;
  using Buffer = std::array<std::byte, kAtOnce>;

  struct Reports {
    std::function<void()> ended;                    // gRPC has closed its end, and all that it said was sent on
    std::function<void(const Error& why)> refused;  // the client went beyond a bound; `ended` comes later
    std::function<void()> sent_descriptor;          // on kernels that do not refuse descriptors
  };
  // `buffer` is used within calls only, so that all relays of a thread share one. All outlive the relay.
  struct Surroundings {
    boost::asio::io_context& io;
    FrameMeter& meter;
    Buffer& buffer;
  };

  struct Made {
    std::shared_ptr<GrpcRelay> relay;
    UniqueFd grpc;  // gRPC's end; it does not block
  };
  // Nothing is read before begin(). Errors: errno_error() of making the sockets.
  static Result<Made> create(Surroundings around, UniqueFd client, std::shared_ptr<HeldByUser> held, Reports reports);
  ~GrpcRelay();
  GrpcRelay(const GrpcRelay&) = delete;
  GrpcRelay& operator=(const GrpcRelay&) = delete;
  void begin();

  // The client is heard and told nothing more; gRPC sees the end behind what was sent.
  void cut_off();

 private:
  GrpcRelay(Surroundings around, std::shared_ptr<HeldByUser> held, Reports reports);

  using Descriptor = boost::asio::posix::stream_descriptor;

  template <class Next>
  void wait(Descriptor& descriptor, Descriptor::wait_type what, Next next);

  void wait_for_client();
  void take_from_client();
  Result<std::uint32_t> look_at(ByteView bytes);
  Result<void> charge();
  void pass_on(ByteView bytes);
  void pass_on_the_rest();
  void read_client_again();
  void client_ended();
  void refuse(const Error& why);
  void drop_what_comes();
  void stop_lingering();
  bool has_gone();

  void wait_for_grpc();
  void take_from_grpc();
  void answer(ByteView bytes);
  void answer_the_rest();
  void end();

  // What of `bytes` is not sent yet; nullopt: it never will be.
  static std::optional<ByteView> send_some(Descriptor& to, ByteView bytes);

  Surroundings around_;
  const std::shared_ptr<HeldByUser> by_user_;  // shared by his connections
  const Reports reports_;
  Descriptor client_, grpc_;
  boost::asio::steady_timer pause_;
  Http2Frames frames_;
  std::uint64_t held_ = 0;                      // what `by_user_` knows of this connection
  std::vector<std::byte> to_grpc_, to_client_;  // what the other side has not taken yet
  std::chrono::nanoseconds pause_for_{0};
  bool client_is_over_ = false;  // nothing is taken from it any more
  bool lingers_ = false;         // a client that was refused goes on writing for a while, so that it reads why
  bool grpc_is_over_ = false;
  bool client_hears_ = true;  // what gRPC says is sent to it
};

// SETTINGS and a GOAWAY with ENHANCE_YOUR_CALM and `why`: what a server says to a client that it has no room for (RFC
// 9113, 6.8). `first`: nothing was said to it before.
std::string goaway(std::string_view why, bool first);

}  // namespace millrace
