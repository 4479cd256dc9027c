// What the daemon says, asked for over gRPC and shared for a moment: however many ask here, the daemon is asked at most
// some times a second. It goes on by itself when the daemon is back. Thread-bound(its io_context); the threads of gRPC
// only post to it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/src/wire/daemon_channel.h"
#include "millrace/v1/statistics.pb.h"
#include "proto/base/result.h"

namespace millrace::cli {

class DaemonLink {
 public:
  template <class Message>
  using Outcome = Result<std::shared_ptr<const Message>>;
  template <class Message>
  using Then = std::function<void(const Outcome<Message>&)>;

  DaemonLink(boost::asio::io_context& context, Address address);
  ~DaemonLink();  // REQUIRES: nothing is under way any more: the io_context's run() has returned

  // At most four times a second of the daemon.
  void statistics(Then<v1::GetStatisticsReply> then);
  // Of one session, or of all where it is 0; at most 20 times a second of the daemon. kNotFound: there is no such
  // session. kUnsupported: the daemon is older. kDeadline: no answer in three seconds, of the queue or the daemon. No
  // paths: the caller here is anybody.
  void explain(std::uint64_t session, bool history, Then<v1::ExplainReply> then);

  std::uint64_t asks() const { return asks_; }
  // Ends what is under way; asks after that end at once with kCancelled.
  void stop();

 private:
  template <class Message>
  struct Shared {
    std::optional<Outcome<Message>> last;
    std::chrono::steady_clock::time_point at{};
    std::vector<Then<Message>> waiting;
  };
  struct Beginning;
  template <class Message>
  struct Call;
  using Explained = std::pair<std::uint64_t, bool>;
  struct Turn {
    Explained which;
    std::chrono::steady_clock::time_point until{};  // it is of use
  };

  template <class Message>
  bool joined(Shared<Message>& shared, std::chrono::milliseconds fresh_for, Then<Message>& then) const;
  template <class Message, class Start>
  void ask(Start start, Then<Message> then);
  void explain_next();
  void end_turn(const Outcome<v1::ExplainReply>& outcome, bool kept);
  void forget_old();
  // A channel that has failed waits longer and longer before it tries again: a new one tries at once.
  std::shared_ptr<DaemonChannel> channel();

  boost::asio::io_context& context_;
  const Address address_;
  std::shared_ptr<DaemonChannel> channel_;  // nullptr: one is to be made
  Shared<v1::GetStatisticsReply> statistics_;
  std::map<Explained, Shared<v1::ExplainReply>> explained_;
  std::deque<Turn> to_explain_;  // each has one who waits
  boost::asio::steady_timer next_explanation_;
  std::list<std::shared_ptr<Beginning>> under_way_;
  std::vector<std::weak_ptr<const int>> callbacks_;  // that a thread of gRPC has, or will have
  bool stopped_ = false;
  std::uint64_t asks_ = 0;
};

}  // namespace millrace::cli
