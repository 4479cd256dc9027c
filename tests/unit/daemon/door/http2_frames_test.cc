// What is read of a client's HTTP/2 frames before gRPC has them: bounds, small frames, and what gRPC has to keep.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>

#include "daemon/door/frame_meter.h"
#include "daemon/door/http2_frames.h"
#include "tests/support/host/http2_connection.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

ByteView bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// A client's connection behind the preface.
struct Connection {
  Connection() { REQUIRE(frames.take_from_client(bytes_of(http2_preface()))); }

  Result<std::uint32_t> client(const std::string& bytes) { return frames.take_from_client(bytes_of(bytes)); }
  void server(const std::string& bytes) { frames.take_from_server(bytes_of(bytes)); }
  void begin_call(std::uint32_t stream) { REQUIRE(client(headers(stream))); }

  static std::string headers(std::uint32_t stream, char flags = kHttp2EndHeaders) {
    return http2_frame(Http2Frame::kHeaders, flags, stream, call_headers("/a.B/C"));
  }
  static std::string data(std::uint32_t stream, const std::string& bytes, char flags = 0) {
    return http2_frame(Http2Frame::kData, flags, stream, bytes);
  }

  Http2Frames frames;
};

std::string why(const Result<std::uint32_t>& taken) {
  REQUIRE_FALSE(taken);
  return taken.error().message;
}

std::uint32_t small_frames(const Result<std::uint32_t>& taken) {
  REQUIRE(taken);
  return *taken;
}

constexpr std::uint64_t kPinned = Http2Frames::kPinned;

std::string window_update(std::uint32_t stream, std::uint32_t bytes) {
  std::string increment;
  for (const int shift : {24, 16, 8, 0}) increment += static_cast<char>(bytes >> shift);
  return http2_frame(Http2Frame::kWindowUpdate, 0, stream, increment);
}

}  // namespace

TEST_CASE("what does not begin as HTTP/2 is refused at its first wrong byte", "[door]") {
  Http2Frames plain, cut;

  CHECK_THAT(why(plain.take_from_client(bytes_of("GET / HTTP/1.1\r\n"))), Catch::Contains("not HTTP/2"));
  CHECK(cut.take_from_client(bytes_of("PRI * HT")));
  CHECK_THAT(why(cut.take_from_client(bytes_of("XP/2.0"))), Catch::Contains("not HTTP/2"));
}

TEST_CASE("a header block has so many bytes and frames, and no other frame within it", "[door]") {
  const auto block = [](std::size_t continuations, std::size_t bytes) {
    std::string all = Connection::headers(1, 0);
    for (std::size_t i = 0; i < continuations; ++i)
      all += http2_frame(Http2Frame::kContinuation, i + 1 == continuations ? kHttp2EndHeaders : 0, 1,
                         std::string(bytes, 'x'));
    return all;
  };

  CHECK(small_frames(Connection().client(block(Http2Frames::kHeaderFrames - 1, 100))) == Http2Frames::kHeaderFrames);
  CHECK_THAT(why(Connection().client(block(Http2Frames::kHeaderFrames, 0))), Catch::Contains("header block of more"));
  CHECK_THAT(why(Connection().client(block(3, 16'000))), Catch::Contains("header block of more"));
  CHECK_THAT(why(Connection().client(Connection::headers(1, 0) + http2_frame(Http2Frame::kPing, 0, 0, "12345678"))),
             Catch::Contains("within a header block"));
  CHECK_THAT(why(Connection().client(Connection::headers(0))), Catch::Contains("no stream"));
  CHECK_THAT(why(Connection().client(http2_frame(Http2Frame::kContinuation, kHttp2EndHeaders, 1, "x"))),
             Catch::Contains("without a header block"));
  CHECK_THAT(why(Connection().client(Connection::headers(1, 0) +
                                     http2_frame(Http2Frame::kContinuation, kHttp2EndHeaders, 3, "x"))),
             Catch::Contains("without a header block"));
}

TEST_CASE("a header block that is never whole is refused before its bytes have come", "[door]") {
  std::string large = http2_frame(Http2Frame::kHeaders, 0, 1, std::string(Http2Frames::kHeaderBytes + 1, 'x'));
  large.resize(9);

  CHECK_THAT(why(Connection().client(large)), Catch::Contains("header block of more"));
}

TEST_CASE("frames that carry no message have the length that HTTP/2 gives them, and DATA no padding", "[door]") {
  for (const Http2Frame type : {Http2Frame::kSettings, Http2Frame::kPing, Http2Frame::kGoaway, Http2Frame::kUnknown}) {
    CHECK(small_frames(Connection().client(http2_frame(type, 0, 0, std::string(Http2Frames::kFrameBytes, 'x')))) == 1);
    CHECK_THAT(why(Connection().client(http2_frame(type, 0, 0, std::string(Http2Frames::kFrameBytes + 1, 'x')))),
               Catch::Contains("more than the 16384"));
  }
  CHECK_THAT(why(Connection().client(Connection::data(1, "12345", kHttp2Padded))), Catch::Contains("padded"));
}

TEST_CASE("PINGs are bounded until the server says something of a call", "[door]") {
  const std::string ping = http2_frame(Http2Frame::kPing, 0, 0, "12345678");
  Connection connection;
  for (int times = 0; times < 3; ++times) {
    for (std::uint32_t i = 0; i < Http2Frames::kPings; ++i) REQUIRE(connection.client(ping));
    connection.server(http2_frame(Http2Frame::kHeaders, kHttp2EndHeaders, 1, "x"));
  }
  for (std::uint32_t i = 0; i < Http2Frames::kPings; ++i) REQUIRE(connection.client(ping));
  connection.server(http2_frame(Http2Frame::kPing, 1, 0, "12345678"));
  constexpr char kAck = 1;
  for (int i = 0; i < 500; ++i) REQUIRE(connection.client(http2_frame(Http2Frame::kPing, kAck, 0, "12345678")));

  CHECK_THAT(why(connection.client(ping)), Catch::Contains("PINGs"));
}

TEST_CASE("streams that the server leaves open are bounded", "[door]") {
  Connection connection;
  for (std::uint32_t i = 0; i < Http2Frames::kStreams; ++i) connection.begin_call(2 * i + 1);

  CHECK_THAT(why(connection.client(Connection::headers(2 * Http2Frames::kStreams + 1))), Catch::Contains("streams"));
}

TEST_CASE("messages of a stream count until the server opens its window again, or ends it", "[door]") {
  Connection connection;
  connection.begin_call(1);
  CHECK(connection.frames.held() == kPinned);

  REQUIRE(small_frames(connection.client(Connection::data(1, grpc_message(60'000, std::string(50'000, 'x'))))) == 0);
  CHECK(connection.frames.held() == 2 * kPinned + 50'005);
  REQUIRE(connection.client(Connection::data(1, std::string(10'000, 'x') + grpc_message(3, "abc"))));
  CHECK(connection.frames.held() == 3 * kPinned + 60'013);
  connection.server(window_update(1, 50'000));
  CHECK(connection.frames.held() == 3 * kPinned + 60'013);
  connection.server(window_update(1, 10'013));
  CHECK(connection.frames.held() == kPinned);
  REQUIRE(connection.client(Connection::data(1, grpc_message(3, "abc"))));
  connection.server(http2_frame(Http2Frame::kHeaders, kHttp2EndHeaders | kHttp2EndStream, 1, "x"));
  CHECK(connection.frames.held() == 0);
}

TEST_CASE("a message that is half sent counts though the window was opened for all of it", "[door]") {
  Connection connection;
  connection.begin_call(1);
  REQUIRE(connection.client(Connection::data(1, grpc_message(50'000, std::string(1'000, 'x')))));
  connection.server(window_update(1, 1'000'000));
  REQUIRE(connection.client(Connection::data(1, std::string(40'000, 'x'))));

  CHECK(connection.frames.held() == 3 * kPinned + 41'005);
}

TEST_CASE("bytes that pin a buffer each cost one each", "[door]") {
  Connection connection;
  connection.begin_call(1);
  for (int i = 0; i < 100; ++i) REQUIRE(connection.client(Connection::data(1, grpc_message(0, ""))));

  CHECK(connection.frames.held() == 101 * kPinned + 500);
}

TEST_CASE("a stream's first message is bounded, and later ones are not", "[door]") {
  Connection connection;
  connection.begin_call(1);
  REQUIRE(connection.client(Connection::data(1, grpc_message(2, "ab") + grpc_message(1 << 30, "x"))));
  connection.begin_call(3);

  CHECK_THAT(why(connection.client(Connection::data(3, grpc_message(Http2Frames::kFirstMessage + 1, "")))),
             Catch::Contains("began a call with a message of 65537 bytes"));
}

TEST_CASE("what is held of a stream goes with a reset by either side", "[door]") {
  Connection connection;
  for (const std::uint32_t stream : {1, 3}) {
    connection.begin_call(stream);
    REQUIRE(connection.client(Connection::data(stream, grpc_message(60'000, std::string(50'000, 'x')))));
  }
  REQUIRE(connection.frames.held() == 2 * (2 * kPinned + 50'005));

  REQUIRE(connection.client(http2_frame(Http2Frame::kReset, 0, 1, std::string_view("\0\0\0\x8", 4))));
  CHECK(connection.frames.held() == 2 * kPinned + 50'005);
  connection.server(http2_frame(Http2Frame::kReset, 0, 3, "1234"));
  CHECK(connection.frames.held() == 0);
}

TEST_CASE("DATA of a stream that is not open, and after its end, counts for nothing", "[door]") {
  Connection connection;
  connection.begin_call(1);
  connection.server(http2_frame(Http2Frame::kHeaders, kHttp2EndStream, 1, ""));

  REQUIRE(connection.client(Connection::data(1, grpc_message(9'000, std::string(5'000, 'x')))));
  REQUIRE(connection.client(Connection::data(77, grpc_message(9'000, std::string(5'000, 'x')))));

  CHECK(connection.frames.held() == 0);
}

TEST_CASE("all is the same however the bytes are cut", "[door]") {
  std::string bytes = http2_preface() + Connection::headers(1) + Connection::data(1, grpc_message(5'000, ""));
  bytes += Connection::data(1, std::string(4'000, 'x')) + http2_frame(Http2Frame::kPing, 0, 0, "12345678");
  bytes += Connection::headers(3, 0) + http2_frame(Http2Frame::kContinuation, kHttp2EndHeaders, 3, "abc");
  bytes += Connection::data(3, grpc_message(0, "") + grpc_message(1, "x") + grpc_message(70, "abc"));
  Http2Frames whole;
  const auto small = whole.take_from_client(bytes_of(bytes));
  REQUIRE(small);

  for (const std::size_t piece : {1, 2, 7, 100, 1'000}) {
    Http2Frames cut;
    std::uint32_t small_in_pieces = 0;
    for (ByteView rest = bytes_of(bytes); !rest.empty(); rest = rest.subspan(std::min(piece, rest.size())))
      small_in_pieces += *cut.take_from_client(rest.first(std::min(piece, rest.size())));
    CAPTURE(piece);
    CHECK(small_in_pieces == *small);
    CHECK(cut.held() == whole.held());
  }
}

TEST_CASE("a frame of somebody else's fits between two of the server's only", "[door]") {
  Connection connection;
  const std::string frame = http2_frame(Http2Frame::kData, 0, 1, "abc");
  for (std::size_t cut = 0; cut <= frame.size(); ++cut) {
    connection.server(frame.substr(0, cut));
    CHECK(connection.frames.server_is_between_frames() == (cut == 0 || cut == frame.size()));
    connection.server(frame.substr(cut));
  }
}

TEST_CASE("a user's small frames have a rate, some saved up, and others' are their own", "[door]") {
  constexpr UserId kOne{1}, kOther{2};
  const FrameMeter::Clock::time_point start{1'000'000s};
  FrameMeter meter;

  CHECK(meter.sent(kOne, FrameMeter::kBurst, start) == 0ns);
  CHECK(meter.sent(kOne, FrameMeter::kPerSecond / 2, start) == 500ms);
  CHECK(meter.sent(kOther, 1, start) == 0ns);
  CHECK(meter.sent(kOne, 0, start + 400ms) == 100ms);
  CHECK(meter.sent(kOne, FrameMeter::kPerSecond, start + 1'500ms) == 0ns);
  CHECK(meter.sent(kOne, FrameMeter::kBurst, start + 1h) == 0ns);
  CHECK(meter.sent(kOne, 1, start + 1h) > 0ns);
  CHECK(meter.sent(kOne, 100 * FrameMeter::kBurst, start + 2h) == 1s);
}

TEST_CASE("users without a debt are forgotten, and one with a debt is not", "[door]") {
  const FrameMeter::Clock::time_point start{1'000'000s};
  FrameMeter meter;
  meter.sent(UserId{9'999}, 10 * FrameMeter::kBurst, start);

  for (std::uint32_t user = 0; user < 2'000; ++user) meter.sent(UserId{user}, 1, start + 1s);

  CHECK(meter.sent(UserId{9'999}, 1, start + 1s) > 0ns);
}
