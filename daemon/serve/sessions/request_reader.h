// A session's requests, which come over its reply socket, the other way: frames of proto/shm/handoff_wire.h, which take no
// gRPC and no change of threads. Messages in which there is little to look at are parsed
// where they are read, on the control thread; others on a thread for that, while nothing more of the session is read.
//
//   readable ──▶ received, 256 KiB at most ──▶ frames, few at a time ──▶ Port::requested()
//      ▲              then everybody else's turn               └─ one with much in it ─▶ parsing thread ─▶ the same
//      └───────────────────────────────────────────────────────────────────────────────────┘
//
// A user who has had more than his part of a busy control thread is read again when he has not (control_time.h).
//
// Thread-bound(control). Held by a shared_ptr, because handlers hold it weakly.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "daemon/admit/ledger.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "daemon/pipeline/turns/control_time.h"
#include "daemon/serve/parse/request_intake.h"
#include "daemon/serve/sessions/reply_socket.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

class RequestReader final : public std::enable_shared_from_this<RequestReader> {
 public:
  // What is parsed on the control thread: with its images, and beside them, where each byte takes its time.
  static constexpr Bytes kParsedHere = 1_MiB, kLookedAtHere = 8_KiB;

  class Port {
   public:
    virtual ~Port() = default;
    virtual void requested(ClientRequest request, Charge room) = 0;
    // Nothing more is read. kInvalid: what came is no message. kExhausted: it is too long, or there is no room for it.
    // kPrecondition: the client has closed the socket.
    virtual void unreadable(const Error& why) = 0;
    // Likewise: a descriptor came along, and is gone again.
    virtual void sent_descriptor() = 0;
  };
  struct Surroundings {
    boost::asio::io_context& control;
    boost::asio::thread_pool& parsing;
    const InForce<Limits> limits;                  // looked at for each message
    std::shared_ptr<const DatasetTable> datasets;  // the session's; shared with the parsing thread
    std::shared_ptr<Account> account;              // shared: see Ledger::account()
    ControlTime& time;
    UserId user{};                        // whose session it is
    std::shared_ptr<SessionCosts> costs;  // of the session; shared with it and its batches
  };

  // `surroundings` and `port` outlive it, but for what is under way on the parsing thread.
  RequestReader(std::shared_ptr<ReplySocket> socket, Surroundings surroundings, Port& port);

  void start();  // REQUIRES: once
  void stop();   // Port hears nothing more, and what has been received is forgotten. Idempotent

 private:
  void wait();
  void read();
  bool receive();
  void take_frames();
  void take_frames_later();
  std::optional<std::uint32_t> next_length() const;
  bool has_frame() const;
  bool make_room();
  void move_to(std::byte* begin);
  void take(std::uint32_t length);
  void take_elsewhere(std::uint32_t length);
  void give_up(const Error& why);
  void tidy();

  const std::shared_ptr<ReplySocket> socket_;  // shared with the session, which writes to it
  const Surroundings around_;
  Port& port_;
  std::unique_ptr<std::byte[]> bytes_;   // received
  std::size_t size_ = 0;                 // of bytes_
  std::size_t begin_ = 0, end_ = 0;      // of what is not taken yet
  Charge room_;                          // for what bytes_ has beyond the usual
  v1::ClientMessage message_untrusted_;  // kept for its memory
  boost::asio::steady_timer later_;
  bool ended_ = false;  // the client says no more
  bool stopped_ = false;
};

}  // namespace millrace
