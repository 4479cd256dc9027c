// A daemon's outside in this process, for faults that the real one is built never to show: wrong versions, stale and
// lying handles, silence. It speaks the real hand-off and gRPC; what it answers is up to the test. Thread-safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "millrace/v1/session.grpc.pb.h"
#include "proto/base/bounded_queue.h"
#include "proto/base/bytes.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"
#include "proto/rpc/vocabulary.h"
#include "proto/shm/handoff_wire.h"
#include "proto/shm/segment_layout.h"

namespace millrace::test {

struct ScriptedOptions {
  std::uint32_t handoff_version = shm::kHandoffVersion;
  std::uint32_t segment_version = shm::kSegmentVersion;
  std::string refusal;                                          // of Hello
  std::optional<v1::Vocabulary> vocabulary = own_vocabulary();  // what it says that it knows; none: it does not say
  bool knows_job = true;                                        // OpenSessionRequest.job, which it refuses else
  std::optional<v1::Limits> limits;                             // what it says that it takes; none: the same
  std::optional<std::uint32_t> filled_slots;  // its segment's object is so long at first, see fill(); none: whole
};

class ScriptedDaemon final : private v1::Sessions::Service {
 public:
  explicit ScriptedDaemon(ScriptedOptions options = {});
  ~ScriptedDaemon() override;

  const std::string& socket() const { return socket_; }

  // The next message of the client, Attach apart; a message without content when none comes within five seconds.
  v1::ClientMessage next_message();
  void send(const v1::ServerMessage& message);  // over the reply socket
  // The reply socket closes now, and the stream ends with that status when the client's next message has come.
  void end_at_next_message(const grpc::Status& status);

  // Fills slot `slot` with `generation`: `samples` images of `image_bytes` bytes, each with the value of its index, ids
  // from 100, labels from 7. Returns the message that completes batch `batch`.
  v1::ServerMessage seal(std::uint64_t batch, std::uint32_t slot, std::uint64_t generation, std::uint32_t samples,
                         std::uint64_t image_bytes);

  // The segment's object gets as long as it has to be for so many slots.
  void fill(std::uint32_t slots);
  // Whether the client said, at open, that it can do with slots that are filled later.
  bool may_fill_later() const { return may_fill_later_; }

  // Whether the client's hand-off connection closes within five seconds.
  bool handoff_closes();
  UniqueFd ring();  // the memfd that the client asked for; waits five seconds for it
  void die();       // everything closes at once

 private:
  using Stream_ = grpc::ServerReaderWriter<v1::ServerMessage, v1::ClientMessage>;

  grpc::Status Open(grpc::ServerContext*, const v1::OpenSessionRequest*, v1::OpenSessionReply*) override;
  grpc::Status Stream(grpc::ServerContext*, Stream_* stream) override;
  void serve_handoff();
  void reply(shm::ReplyKind kind, std::span<const int> descriptors = {}, millrace::Bytes size = {})
      MILLRACE_REQUIRES(mutex_);
  void make_segment(std::uint32_t slots, std::uint64_t slot_bytes);

  const ScriptedOptions options_;
  std::string folder_;
  std::string socket_;
  UniqueFd listener_;
  UniqueFd segment_fd_;
  std::span<std::byte> segment_;
  BoundedQueue<v1::ClientMessage> messages_{10'000};
  BoundedQueue<UniqueFd> rings_{4};
  BoundedQueue<int> closed_{4};
  Mutex mutex_;
  UniqueFd connection_ MILLRACE_GUARDED_BY(mutex_);
  UniqueFd replies_ MILLRACE_GUARDED_BY(mutex_);
  std::optional<grpc::Status> end_ MILLRACE_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
  std::thread handoff_;
  std::atomic<bool> may_fill_later_{false};
};

}  // namespace millrace::test
