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
enum FrameType : std::uint8_t { kData = 0, kHeaders = 1, kReset = 3, kPing = 6, kContinuation = 9 };
constexpr std::uint8_t kEndStream = 0x1, kEndHeaders = 0x4, kPadded = 0x8;

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
    return beyond("sent what is not HTTP/2, which gRPC speaks");
  preface_ += start.size();
  std::uint32_t small = 0;
  while (!bytes.empty()) {
    if (client_.in_payload()) {
      const ByteView payload = client_.take_payload(bytes);
      if (now_.type == kData)
        take_data(payload);
      else if (half_sent_ > 0)
        beside_ += payload.size();
    } else if (client_.take_head(bytes)) {
      now_ = client_.head();
      small += now_.type != kData || now_.length < kSmallData ? 1 : 0;
      MILLRACE_TRY_VOID(begin_frame());
    }
  }
  return small;
}

Result<void> Http2Frames::begin_frame() {
  if (half_sent_ > 0) beside_ += kBesideData;
  if (now_.type == kContinuation) return go_on_with_header_block();
  if (in_headers_ != 0) return beyond("sent another frame within a header block");
  if (now_.type == kHeaders) return begin_header_block();
  if (now_.type == kReset) end_stream(now_.stream);
  if (now_.type == kPing && ++pings_ > kPings)
    return beyond("sent more than " + std::to_string(kPings) + " PINGs for nothing");
  if (now_.type == kData && (now_.flags & kPadded) != 0) return beyond("sent padded DATA, which gRPC does not take");
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
  header_bytes_ += now_.length;
  ++header_frames_;
  if (header_bytes_ > kHeaderBytes || header_frames_ > kHeaderFrames)
    return beyond("sent a header block of more than " + std::to_string(kHeaderBytes) + " bytes or " +
                  std::to_string(kHeaderFrames) + " frames");
  if ((now_.flags & kEndHeaders) != 0) in_headers_ = 0;
  return {};
}

// What is of no open stream gRPC drops.
void Http2Frames::take_data(ByteView payload) {
  const auto stream = streams_.find(now_.stream);
  if (stream != streams_.end()) take_messages(stream->second, payload);
}

void Http2Frames::take_messages(Stream& stream, ByteView bytes) {
  while (!bytes.empty()) {
    if (stream.coming == 0) {
      ++half_sent_;
      hold(stream, kBesideData);
    }
    if (stream.prefix < kMessagePrefix) {
      const auto byte = std::to_integer<std::uint32_t>(take_off(bytes, 1)[0]);
      if (stream.prefix > 0) stream.left = stream.left << 8 | byte;  // the first one says whether it is compressed
      ++stream.prefix;
      hold(stream, 1);
    } else {
      const std::size_t part = take_off(bytes, stream.left).size();
      stream.left -= part;
      hold(stream, part);
    }
    if (stream.prefix == kMessagePrefix && stream.left == 0) message_is_whole(stream);
  }
}

void Http2Frames::hold(Stream& stream, std::uint64_t bytes) {
  stream.coming += bytes;
  held_ += bytes;
}

void Http2Frames::message_is_whole(Stream& stream) {
  held_ -= stream.whole;
  stream.whole = std::exchange(stream.coming, 0);
  stream.prefix = 0;
  if (--half_sent_ == 0) beside_ = 0;
}

void Http2Frames::end_stream(std::uint32_t id) {
  const auto ended = streams_.extract(id);
  if (ended.empty()) return;
  const Stream& stream = ended.mapped();
  held_ -= stream.coming + stream.whole;
  if (stream.coming > 0 && --half_sent_ == 0) beside_ = 0;
}

void Http2Frames::take_from_server(ByteView bytes) {
  while (!bytes.empty()) {
    if (server_.in_payload()) {
      server_.take_payload(bytes);
    } else if (server_.take_head(bytes)) {
      const Head head = server_.head();
      const bool answers = head.type == kData || head.type == kHeaders;
      if (answers) pings_ = 0;
      const bool ends = answers && (head.flags & kEndStream) != 0;
      if (ends || head.type == kReset) end_stream(head.stream);
    }
  }
}

}  // namespace millrace
