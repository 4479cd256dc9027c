// What a client sends on a connection of gRPC's, read frame by frame (RFC 9113) before gRPC has it: whether it keeps to
// bounds that gRPC 1.51 does not have, how many small frames it is, and how much of it gRPC has to keep for now.
//
// Heads of frames are read, and of DATA the length before each of gRPC's messages. Nothing is copied but these.
//
//   bytes held = of each open stream: the message that is coming, and the last whole one, until the server ends the stream
//              + of the connection: all other bytes since a message began, until none is half sent
//
// Thread-bound(its owner).
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

class Http2Frames {
 public:
  // A header block, HEADERS and its CONTINUATIONs together: bytes and frames. gRPC takes 8 KiB of metadata.
  static constexpr std::uint32_t kHeaderBytes = 32 << 10, kHeaderFrames = 8;
  // A frame that is neither DATA nor of a header block, as RFC 9113 has it where the server says nothing else.
  static constexpr std::uint32_t kFrameBytes = 16 << 10;
  static constexpr std::size_t kStreams = 512;  // open ones; gRPC refuses those beyond 128
  static constexpr std::uint32_t kSmallData = 1 << 10;
  // PINGs between two of the server's HEADERS or DATA. gRPC ends a connection at the third that comes too soon, but goes
  // on with those that have come, and keeps a kilobyte for each.
  static constexpr std::uint32_t kPings = 64;
  // What gRPC keeps of a DATA frame beside its bytes.
  static constexpr std::uint32_t kBesideData = 128;

  // The next bytes of the client. Returns how many small frames begin in them: all but DATA of kSmallData bytes and
  // more. kInvalid: no HTTP/2, or beyond a bound; nothing may be taken from the client after it.
  Result<std::uint32_t> take_from_client(ByteView bytes_untrusted);

  // The next bytes of the server's answers, which are trusted.
  void take_from_server(ByteView bytes);
  // A frame of somebody else's may follow.
  bool server_is_between_frames() const { return server_.is_between(); }

  std::uint64_t held() const { return held_ + beside_; }

 private:
  struct Head {
    std::uint32_t length, stream;
    std::uint8_t type, flags;
  };
  // The head of a frame, however it is cut into pieces, and what is left of its payload.
  class Reader {
   public:
    // Takes off `bytes` what belongs to the head. true: it is whole.
    bool take_head(ByteView& bytes);
    Head head() const;
    ByteView take_payload(ByteView& bytes);
    bool is_between() const { return have_ == 0 && left_ == 0; }
    bool in_payload() const { return left_ > 0; }

   private:
    static constexpr std::size_t kHead = 9;
    std::array<std::uint8_t, kHead> bytes_{};
    std::size_t have_ = 0;
    std::uint32_t left_ = 0;
  };
  // Of one stream: gRPC's messages, each behind a byte and its length in four.
  struct Stream {
    std::uint32_t prefix = 0;  // bytes of it that have come
    std::uint64_t left = 0;    // of the message behind it, as far as that is known
    std::uint64_t coming = 0;  // held of the message that is half sent; 0: none is
    std::uint64_t whole = 0;   // held of the last one that is not
  };

  Result<void> begin_frame();
  Result<void> begin_header_block();
  Result<void> go_on_with_header_block();
  void take_data(ByteView payload);
  void take_messages(Stream& stream, ByteView bytes);
  void hold(Stream& stream, std::uint64_t bytes);
  void message_is_whole(Stream& stream);
  void end_stream(std::uint32_t id);

  std::size_t preface_ = 0;  // bytes of it that have come
  Reader client_, server_;
  Head now_{};                    // the client's frame
  std::uint32_t in_headers_ = 0;  // the stream whose header block is half sent; 0: none
  std::uint32_t header_bytes_ = 0, header_frames_ = 0;
  std::uint32_t last_stream_ = 0;
  std::map<std::uint32_t, Stream> streams_;  // open ones
  std::uint32_t pings_ = 0;                  // since the server's last HEADERS or DATA
  std::uint32_t half_sent_ = 0;              // streams with a message that is coming
  std::uint64_t held_ = 0, beside_ = 0;
};

}  // namespace millrace
