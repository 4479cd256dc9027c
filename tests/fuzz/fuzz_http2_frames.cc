// What a client sends on the gRPC socket behind HTTP/2's preface, and what the server answers: two bytes say into which
// pieces the rest is cut, and where the server's begins.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "daemon/door/http2_frames.h"

namespace {

using namespace millrace;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct Seen {
  bool fine = true;
  std::uint64_t small_frames = 0, held = 0, held_after_answers = 0;
  bool between = false;
  bool operator==(const Seen&) const = default;
};

Seen look(ByteView client, ByteView server, std::size_t piece) {
  Http2Frames frames;
  Seen seen;
  MILLRACE_CHECK(frames.take_from_client(std::as_bytes(std::span(kPreface))).has_value());
  for (; seen.fine && !client.empty(); client = client.subspan(std::min(piece, client.size()))) {
    const Result<std::uint32_t> taken = frames.take_from_client(client.first(std::min(piece, client.size())));
    seen.fine = taken.has_value();
    seen.small_frames += taken ? *taken : 0;
  }
  if (!seen.fine) return {.fine = false};
  seen.held = frames.held();
  for (; !server.empty(); server = server.subspan(std::min(piece, server.size())))
    frames.take_from_server(server.first(std::min(piece, server.size())));
  seen.held_after_answers = frames.held();
  seen.between = frames.server_is_between_frames();
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const ByteView all = std::as_bytes(std::span(data, size)).subspan(2);
  const std::size_t cut = all.size() * data[1] / 255;
  const ByteView client = all.first(cut), server = all.subspan(cut);

  const Seen whole = look(client, server, std::max<std::size_t>(all.size(), 1));

  MILLRACE_CHECK(whole == look(client, server, 1 + data[0] % 64U));
  // Of each byte itself, and what is reckoned for a frame, of which the smallest has nine.
  MILLRACE_CHECK(whole.held <= client.size() * (1 + Http2Frames::kPinned / 9));
  MILLRACE_CHECK(whole.held_after_answers <= whole.held);
  return 0;
}
