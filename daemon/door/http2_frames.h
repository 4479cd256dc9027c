// What a client sends on a connection of gRPC's, read frame by frame (RFC 9113) before gRPC has it: whether it keeps to
// bounds that gRPC 1.51 does not have, how many small frames it is, and how much of it gRPC has to keep for now.
//
// Heads of frames are read, and of DATA the length before each of gRPC's messages. Nothing is copied but these.
//
//   bytes held = of each open stream, until the server ends it:
//                  the message that is coming, those before it that the server may not have read yet,
//                  and kPinned for each frame of these and of the header blocks
//
// That the server has read a stream's messages shows in its WINDOW_UPDATEs: it opens the window only for what it reads.
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
  // PINGs between two of the server's HEADERS or DATA, answers to its own not counted. gRPC ends a connection at the third that comes too soon, but goes
  // on with those that have come, and keeps a kilobyte for each.
  static constexpr std::uint32_t kPings = 64;
  // A buffer that gRPC reads into, which lives as long as it has a byte that is kept: see keep_little() in
  // serve/rpc/grpc_server.cc. The most that a frame keeps beside its own bytes.
  static constexpr std::uint32_t kPinned = 8'192 + 256;
  // The first message of a stream: all that a unary call has, and what a stream of a session begins with.
  static constexpr std::uint32_t kFirstMessage = 64 << 10;

  // The next bytes of the client. Returns how many small frames begin in them: all but DATA of kSmallData bytes and
  // more. Nothing may be taken from the client after an error. kUnsupported: no HTTP/2, or a first message that is too large,
  // which an honest client may send once; kInvalid: beyond another bound.
  Result<std::uint32_t> take_from_client(ByteView bytes_untrusted);

  // The next bytes of the server's answers, which are trusted.
  void take_from_server(ByteView bytes);
  // A frame of somebody else's may follow.
  bool server_is_between_frames() const { return server_.is_between(); }

  std::uint64_t held() const { return held_; }

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
    bool is_first = true;      // of the stream
    std::int64_t open = 0;     // bytes of DATA that the server has made room for, less those that came
    // Held: of the header blocks, of the message that is half sent, of those before it.
    std::uint64_t headers = 0, coming = 0, before = 0;
  };

  Result<void> begin_frame();
  Result<void> begin_header_block();
  Result<void> go_on_with_header_block();
  Result<void> take_data(ByteView payload);
  Result<void> take_messages(Stream& stream, ByteView bytes);
  Stream* stream_of(std::uint32_t id);
  void hold(std::uint64_t& share, std::uint64_t bytes);
  void message_is_whole(Stream& stream);
  void window_opens(ByteView payload);
  void end_stream(std::uint32_t id);

  std::size_t preface_ = 0;  // bytes of it that have come
  Reader client_, server_;
  Head now_{};                    // the client's frame
  std::uint32_t in_headers_ = 0;  // the stream whose header block is half sent; 0: none
  std::uint32_t header_bytes_ = 0, header_frames_ = 0;
  std::uint32_t last_stream_ = 0;
  std::map<std::uint32_t, Stream> streams_;  // open ones
  std::uint32_t pings_ = 0;                  // since the server's last HEADERS or DATA
  std::uint32_t increment_ = 0;              // of the server's WINDOW_UPDATE, as far as it has come
  std::uint64_t held_ = 0;
};

}  // namespace millrace
