#include "daemon/door/http2_frames.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace millrace {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::uint32_t kMessagePrefix = 5;

// RFC 9113, 6.
enum FrameType : std::uint8_t { kData = 0, kHeaders = 1, kReset = 3, kPing = 6, kWindowUpdate = 8, kContinuation = 9 };
constexpr std::uint8_t kEndStream = 0x1, kAck = 0x1, kEndHeaders = 0x4, kPadded = 0x8;

std::uint32_t big_endian(const std::uint8_t* at, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | at[i];
  return value;
}

Error beyond(const std::string& what) {
  return Error{Code::kInvalid, what};
}

ByteView take_off(ByteView& bytes, std::size_t most) {
  const ByteView taken = bytes.first(std::min(most, bytes.size()));
  bytes = bytes.subspan(taken.size());
  return taken;
}

}  // namespace

bool Http2Frames::Reader::take_head(ByteView& bytes) {
  const ByteView part = take_off(bytes, kHead - have_);
  std::memcpy(bytes_.data() + have_, part.data(), part.size());
  have_ += part.size();
  if (have_ < kHead) return false;
  have_ = 0;
  left_ = head().length;
  return true;
}

Http2Frames::Head Http2Frames::Reader::head() const {
  return {.length = big_endian(bytes_.data(), 3),
          .stream = big_endian(bytes_.data() + 5, 4) & 0x7fff'ffff,
          .type = bytes_[3],
          .flags = bytes_[4]};
}

ByteView Http2Frames::Reader::take_payload(ByteView& bytes) {
  const ByteView part = take_off(bytes, left_);
  left_ -= static_cast<std::uint32_t>(part.size());
  return part;
}

Result<std::uint32_t> Http2Frames::take_from_client(ByteView bytes) {
  const ByteView start = take_off(bytes, kPreface.size() - preface_);
  if (!start.empty() && std::memcmp(start.data(), kPreface.data() + preface_, start.size()) != 0)
    return Error{Code::kUnsupported, "sent what is not HTTP/2, which gRPC speaks"};
  preface_ += start.size();
  std::uint32_t small = 0;
  while (!bytes.empty()) {
    if (client_.in_payload()) {
      const ByteView payload = client_.take_payload(bytes);
      if (now_.type == kData) MILLRACE_TRY_VOID(take_data(payload));
    } else if (client_.take_head(bytes)) {
      now_ = client_.head();
      small += now_.type != kData || now_.length < kSmallData ? 1 : 0;
      MILLRACE_TRY_VOID(begin_frame());
    }
  }
  return small;
}

Result<void> Http2Frames::begin_frame() {
  if (now_.type == kContinuation) return go_on_with_header_block();
  if (in_headers_ != 0) return beyond("sent another frame within a header block");
  if (now_.type == kHeaders) return begin_header_block();
  if (now_.type == kReset) end_stream(now_.stream);
  if (now_.type == kPing && (now_.flags & kAck) == 0 && ++pings_ > kPings)
    return beyond("sent more than " + std::to_string(kPings) + " PINGs for nothing");
  if (now_.type == kData && (now_.flags & kPadded) != 0) return beyond("sent padded DATA, which gRPC does not take");
  if (Stream* const stream = stream_of(now_.stream); now_.type == kData && now_.length > 0 && stream != nullptr)
    hold(stream->coming, kPinned);
  if (now_.type != kData && now_.length > kFrameBytes)
    return beyond("sent a frame of " + std::to_string(now_.length) + " bytes of type " + std::to_string(now_.type) +
                  ", more than the " + std::to_string(kFrameBytes) + " that it may have");
  return {};
}

Result<void> Http2Frames::begin_header_block() {
  if (now_.stream == 0) return beyond("sent HEADERS of no stream");
  in_headers_ = now_.stream;
  header_bytes_ = header_frames_ = 0;
  if (now_.stream > last_stream_) {
    last_stream_ = now_.stream;
    if (streams_.size() >= kStreams) return beyond("opened more than " + std::to_string(kStreams) + " streams");
    streams_.emplace(now_.stream, Stream{});
  }
  return go_on_with_header_block();
}

Result<void> Http2Frames::go_on_with_header_block() {
  if (in_headers_ == 0 || now_.stream != in_headers_) return beyond("sent CONTINUATION without a header block");
  if (Stream* const stream = stream_of(now_.stream)) hold(stream->headers, kPinned);
  header_bytes_ += now_.length;
  ++header_frames_;
  if (header_bytes_ > kHeaderBytes || header_frames_ > kHeaderFrames)
    return beyond("sent a header block of more than " + std::to_string(kHeaderBytes) + " bytes or " +
                  std::to_string(kHeaderFrames) + " frames");
  if ((now_.flags & kEndHeaders) != 0) in_headers_ = 0;
  return {};
}

// What is of no open stream gRPC drops.
Result<void> Http2Frames::take_data(ByteView payload) {
  Stream* const stream = stream_of(now_.stream);
  if (stream == nullptr) return {};
  stream->open -= static_cast<std::int64_t>(payload.size());
  return take_messages(*stream, payload);
}

Result<void> Http2Frames::take_messages(Stream& stream, ByteView bytes) {
  while (!bytes.empty()) {
    if (stream.prefix < kMessagePrefix) {
      const auto byte = std::to_integer<std::uint32_t>(take_off(bytes, 1)[0]);
      if (stream.prefix > 0) stream.left = stream.left << 8 | byte;  // the first one says whether it is compressed
      ++stream.prefix;
      hold(stream.coming, 1);
      if (stream.prefix == kMessagePrefix && stream.is_first && stream.left > kFirstMessage)
        return Error{Code::kUnsupported, "began a call with a message of " + std::to_string(stream.left) +
                                             " bytes, at most " + std::to_string(kFirstMessage) + " are taken"};
    } else {
      const std::size_t part = take_off(bytes, stream.left).size();
      stream.left -= part;
      hold(stream.coming, part);
    }
    if (stream.prefix == kMessagePrefix && stream.left == 0) message_is_whole(stream);
  }
  return {};
}

Http2Frames::Stream* Http2Frames::stream_of(std::uint32_t id) {
  const auto stream = streams_.find(id);
  return stream == streams_.end() ? nullptr : &stream->second;
}

void Http2Frames::hold(std::uint64_t& share, std::uint64_t bytes) {
  share += bytes;
  held_ += bytes;
}

void Http2Frames::message_is_whole(Stream& stream) {
  stream.before += std::exchange(stream.coming, 0);
  stream.prefix = 0;
  stream.is_first = false;
}

// It opens by the whole length of a message as soon as that is known, so what is open may be ahead of what has come.
void Http2Frames::window_opens(ByteView payload) {
  for (const std::byte byte : payload) increment_ = increment_ << 8 | std::to_integer<std::uint32_t>(byte);
  if (server_.in_payload()) return;
  Stream* const stream = stream_of(server_.head().stream);
  if (stream == nullptr) return;
  stream->open += increment_;
  if (stream->open >= 0) held_ -= std::exchange(stream->before, 0);
}

void Http2Frames::end_stream(std::uint32_t id) {
  const auto ended = streams_.extract(id);
  if (!ended.empty()) held_ -= ended.mapped().headers + ended.mapped().coming + ended.mapped().before;
}

void Http2Frames::take_from_server(ByteView bytes) {
  while (!bytes.empty()) {
    if (server_.in_payload()) {
      const ByteView payload = server_.take_payload(bytes);
      if (server_.head().type == kWindowUpdate) window_opens(payload);
    } else if (server_.take_head(bytes)) {
      const Head head = server_.head();
      increment_ = 0;
      const bool answers = head.type == kData || head.type == kHeaders;
      if (answers) pings_ = 0;
      const bool ends = answers && (head.flags & kEndStream) != 0;
      if (ends || head.type == kReset) end_stream(head.stream);
    }
  }
}

}  // namespace millrace
