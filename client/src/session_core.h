// A session's parts, shared by Session, its epochs and its datasets: memory, stream, and what has arrived. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "client/src/holding.h"
#include "client/src/inbox.h"
#include "client/src/wire/address.h"
#include "client/src/wire/daemon_knowledge.h"
#include "client/src/wire/deadline.h"
#include "client/src/wire/wire.h"
#include "millrace/session.h"

namespace millrace {
inline namespace client {

class SessionCore {
 public:
  // Hand-off, Sessions.Open, segment, stream, Attach: the whole way until the daemon has attached the stream.
  static Result<std::shared_ptr<SessionCore>> open(const Address& address, const SessionOptions& options);
  ~SessionCore() { holding_->say_goodbye(); }  // views may keep the memory
  SessionCore(const SessionCore&) = delete;
  SessionCore& operator=(const SessionCore&) = delete;

  std::uint64_t id() const { return id_; }
  const Address& address() const { return address_; }
  Bytes slot_bytes() const { return slot_bytes_; }
  const Recipe& recipe() const { return recipe_; }
  std::uint32_t batch() const { return batch_; }
  const RequestLimits& limits() const { return limits_; }
  std::uint64_t fresh_number() {
    return numbers_.fetch_add(1, std::memory_order_relaxed);
  }  // of batches, epochs, datasets

  Holding& holding() { return *holding_; }
  Inbox& inbox() { return *inbox_; }
  Wire& wire() { return *wire_; }

  // Queues a message that asks for something. kUnsupported: the daemon is older and does not know what it says.
  Result<void> send(v1::ClientMessage message, std::span<const LargeImage> images = {});

  // Why nothing will come any more.
  std::optional<Error> ended() const;

  // Waits until `take` (of Inbox) has an answer. kDeadline: names `what`.
  template <class Take>
  auto wait(Deadline deadline, std::string_view what, Take take) -> typename decltype(take())::value_type {
    for (;;) {
      const std::uint64_t seen = wire_->seen();
      const Deadline next_look = look_at_device();
      if (auto taken = take()) return *std::move(taken);
      if (auto ended = this->ended()) return *std::move(ended);
      if (std::chrono::steady_clock::now() >= deadline)
        return Error{
            Code::kDeadline,
            std::string(what) + ": nothing came in time; give it a longer timeout, or see what `millrace stats` says"};
      wire_->pump(seen, std::min(deadline, next_look));
    }
  }

  // As wait(), for a batch that the program has then. With its release the daemon hears how long that took. Calls before
  // it whose time was over without a batch are added.
  template <class Take>
  auto wait_for_batch(Deadline deadline, std::string_view what, Take take) -> typename decltype(take())::value_type {
    const auto began = std::chrono::steady_clock::now();
    auto taken = wait(deadline, what, take);
    note_wait(taken, std::chrono::steady_clock::now() - began);
    return taken;
  }

 private:
  static Result<std::shared_ptr<SessionCore>> open_once(const Address& address, const SessionOptions& options,
                                                        Bytes slot_bytes, Deadline deadline);
  SessionCore(Address address, std::shared_ptr<Holding> holding, const SessionOptions& options,
              DaemonKnowledge knowledge, const RequestLimits& limits, Bytes slot_bytes, std::shared_ptr<Wire> wire);
  Result<void> attach(const std::string& ticket, Deadline deadline);
  void note_wait(Result<Batch>& taken, std::chrono::nanoseconds waited);
  void note_wait(Result<std::optional<Batch>>& taken, std::chrono::nanoseconds waited);
  void note_wait(Batch* taken, const Error* why_not, std::chrono::nanoseconds waited);
  // Gives back the slots that the GPU has done with. Returns when to look again.
  Deadline look_at_device();

  const Address address_;
  const Recipe recipe_;
  const std::uint32_t batch_;
  const DaemonKnowledge knowledge_;
  const bool knows_waits_;  // the daemon, of programs
  const RequestLimits limits_;
  const Bytes slot_bytes_;
  const std::shared_ptr<Holding> holding_;  // shared with the views
  const std::shared_ptr<Wire> wire_;        // shared with views that are giving their slots back
  const std::shared_ptr<Inbox> inbox_;      // shared with the wire
  std::uint64_t id_ = 0;
  std::atomic<std::uint64_t> numbers_{1};              // counts; publishes nothing
  std::atomic<std::int64_t> waited_without_batch_{0};  // nanoseconds since one was last taken; likewise
};

}  // namespace client
}  // namespace millrace
