// One process that decodes for a lane, as the lane has it (decoder_wire.h has what they say). Started by the thread that
// uses it, killed and reaped with its owner; the kernel ends it if that thread ends otherwise.
//
//   DecoderChild::start(program) ──▶ ask() ──▶ kAnswered: ask() again
//                                          ├─▶ kLate, kUnwanted: killed; of no more use
//                                          └─▶ kDied:  of no more use
//
// Thread-bound(the lane that started it).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "daemon/backend/cpu/isolation/decoder_wire.h"
#include "daemon/backend/cpu/isolation/shared_room.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "kernels/base/deadline.h"
#include "proto/base/unique_fd.h"

namespace millrace {

// What all processes of a backend begin as.
struct DecoderProgram {
  std::string path;
  std::shared_ptr<const UniqueFd>
      file;                 // of it as it was when the daemon started: an upgrade may replace it. Shared by all lanes
  std::uint64_t reach = 0;  // bytes of common memory, at the most
  std::uint32_t cpu_seconds = 0;  // of processor time before the kernel ends it
  InForce<Limits> limits{};       // of which the two were made
};

struct DecoderAnswer {
  enum class End : std::uint8_t { kAnswered, kLate, kUnwanted, kDied };
  End end = End::kDied;
  DecoderReply reply_untrusted{};
  int signal = 0;  // that it died of; 0: it ended by itself, with `status`
  int status = 0;
};

class DecoderChild {
 public:
  // Private memory that a process may always take: its own, and 8 MiB for its libraries.
  static constexpr Bytes kData = 16_MiB;
  // Of the common memory, what is kept from image to image.
  static constexpr Bytes kRoomKept = 16_MiB;

  // Returns once it is in its sandbox; takes some 2 ms. Errors: kInternal, with what it says itself; kExhausted.
  static Result<std::unique_ptr<DecoderChild>> start(const DecoderProgram& program);
  DecoderChild(const DecoderChild&) = delete;
  DecoderChild& operator=(const DecoderChild&) = delete;
  ~DecoderChild();

  // Puts `file` and `room` bytes for what becomes of it into the common memory, and waits for the answer while
  // it is wanted, up to the deadline and a moment. `data`: private memory that it may take. Of `request`
  // the deadline and the places in memory are filled in. kExhausted: this process lacks memory; nothing was asked then.
  Result<DecoderAnswer> ask(DecoderRequest& request, ByteView file_untrusted, Bytes room, Bytes data,
                            const kernels::Deadline& deadline);

  // The common memory, which the process may write at any time. Good until the next ask() or shrink().
  const std::uint8_t* memory() const { return room_.data(); }
  // Whether it was asked anything.
  bool is_fresh() const { return asked_ == 0; }
  // The time that answers took, in all.
  std::chrono::nanoseconds worked() const { return worked_; }
  // After an image: false if it holds more than kData. Else it may take no more than that again.
  bool is_small_again();
  void shrink(Bytes most) { room_.shrink(most.count); }
  pid_t pid() const { return pid_; }

  // CPU time that it used since this was last asked.
  std::chrono::nanoseconds lap();
  // To which it adds what lap() would say, when it ends; outlives it.
  void tell_at_end(std::chrono::nanoseconds& use) { at_end_ = &use; }

 private:
  DecoderChild(UniqueFd channel, SharedRoom room, pid_t pid);
  Result<void> let_begin();
  Result<void> wait_until_ready();
  Result<void> put(DecoderRequest& request, ByteView file_untrusted, Bytes room, Bytes data);
  Result<void> allow(Bytes data);
  DecoderAnswer wait(std::chrono::steady_clock::time_point until, const kernels::Deadline& deadline = {});
  DecoderAnswer end(DecoderAnswer::End how);

  UniqueFd channel_;
  SharedRoom room_;
  pid_t pid_;  // 0: reaped
  // Its /proc/PID/statm, opened before it shuts itself in: from then on it is hidden from this user where the unit says
  // ProtectProc=invisible.
  UniqueFd statm_;
  Bytes allowed_ = kData;
  std::uint64_t asked_ = 0;
  std::chrono::nanoseconds worked_{0}, used_{0};  // of CPU time, as last told
  std::chrono::nanoseconds* at_end_ = nullptr;
};

}  // namespace millrace
