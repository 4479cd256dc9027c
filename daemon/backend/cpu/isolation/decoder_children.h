// The libraries in processes beside a lane. A process belongs to one user for as long as it lives: what a hostile file
// makes of it sees that user's images and no other's.
//
//   image of a user ──▶ his process, or a new one ──▶ answer ──▶ view of the common memory
//        ▲                    │                         │
//        └── once more, in a  └── the user longest ago  └── dead or late: its error; the process is gone
//            new one              makes way
//
// What is kept for everybody is made by a new process, which has seen nothing of anybody's: so no file has a hand in
// another's pixels but for the user who sent both. An image at which a process dies that had others before is tried
// once more in a new one, so its verdict is its own.
//
// Where the host lacks processes, descriptors or memory to start one, the lane waits for kMoment; then the image is
// kUnavailable, and may come again. Once a lane has waited for kPatience in all it is kExhausted.
//
// A process is replaced when it has worked for kMostWork, or holds more memory than an idle one may.
//
// Thread-bound(the lane that owns it).
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "daemon/backend/cpu/decoders/library_decoder.h"
#include "daemon/backend/cpu/isolation/decoder_child.h"
#include "daemon/backend/cpu/isolation/decoder_deaths.h"

namespace millrace {

// The program and the bounds of every process. `path` empty: beside this program, or in ../libexec/millrace.
// kInvalid: there is none, or it cannot be shut in here; it is started once to see.
Result<DecoderProgram> decoder_program(const std::string& path, const InForce<Limits>& limits);

class DecoderChildren final : public LibraryDecoder {
 public:
  static constexpr std::size_t kMost = 4;  // users, so processes, at a time
  static constexpr std::chrono::seconds kMostWork{10}, kPatience{10};
  static constexpr std::chrono::milliseconds kMoment{200};

  // `counters` outlive this; nullptr: nothing is counted.
  explicit DecoderChildren(const DecoderProgram& program, Counters* counters = nullptr)
      : program_(program), deaths_(counters) {}

  Result<kernels::U8View> decode(ImageFormat format, const DecodeRequest& request, PixelBuffer& buffer) override;
  Result<std::vector<std::uint8_t>> pack(const DecodeRequest& request, kernels::packed::Encoder& encoder) override;
  void trim() override;

  // CPU time that its processes used since this was last asked, those that have ended included.
  std::chrono::nanoseconds lap();

 private:
  struct UsersChild {
    std::uint32_t user;
    std::unique_ptr<DecoderChild> process;
  };
  struct Question {
    DecoderWork work;
    ImageFormat format;
    const DecodeRequest& request;
    Bytes room;
    Bytes data;
  };
  // What an answer points into.
  struct Answered {
    DecoderReply reply_untrusted;
    DecoderRequest request;
    const std::uint8_t* memory;
  };

  // Processes begin anew when a limit has changed of which their bounds were made.
  void follow_limits();
  Result<Answered> ask(const Question& question);
  // That of the user, first in children_.
  Result<DecoderChild*> child_for(const DecodeRequest& request);
  Result<DecoderChild*> start_for(std::uint32_t user, Clock::time_point deadline);
  Result<std::unique_ptr<DecoderChild>> start_until(Clock::time_point deadline);
  void keep_small();

  DecoderProgram program_;
  DecoderDeaths deaths_;
  std::chrono::nanoseconds used_by_ended_{0};  // and not told
  std::list<UsersChild> children_;             // the last used first
  struct Lacking {
    Clock::time_point since, last;
  };
  std::optional<Lacking> lacking_;
};

}  // namespace millrace
