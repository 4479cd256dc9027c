// Clients that send HTTP/2 frames without ever saying anything.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/host/http2_connection.h"
#include "tests/system/client/acts.h"

namespace millrace {
namespace {

constexpr std::string_view kMethod = "/millrace.v1.Sessions/Open";
constexpr std::uint32_t kMessage = 60 << 10;

std::string many(const std::string& frame, std::size_t bytes) {
  std::string all;
  while (all.size() < bytes) all += frame;
  return all;
}

// Fields that HPACK takes as they are, 103 bytes each.
std::string fields(std::size_t bytes) {
  return many(std::string("\0\1a\x64", 4) + std::string(100, 'x'), bytes);
}

// What is sent first, and then again and again.
struct Kind {
  std::string first, again;
};

std::map<std::string, Kind> kinds() {
  const std::string call = http2_frame(Http2Frame::kHeaders, kHttp2EndHeaders, 1, call_headers(kMethod));
  const auto repeated = [](Http2Frame type, std::uint32_t stream, std::string_view payload) {
    return many(http2_frame(type, 0, stream, payload), 60'000);
  };
  return {
      {"continuation",
       {http2_frame(Http2Frame::kHeaders, 0, 1, call_headers(kMethod)),
        http2_frame(Http2Frame::kContinuation, 0, 1, fields(16'000))}},
      {"empty_continuation",
       {http2_frame(Http2Frame::kHeaders, 0, 1, call_headers(kMethod)), repeated(Http2Frame::kContinuation, 1, "")}},
      {"ping", {"", repeated(Http2Frame::kPing, 0, "12345678")}},
      {"settings", {"", repeated(Http2Frame::kSettings, 0, "")}},
      {"priority", {call, repeated(Http2Frame::kPriority, 1, std::string_view("\0\0\0\0\1", 5))}},
      {"window_update", {call, repeated(Http2Frame::kWindowUpdate, 1, std::string_view("\0\0\0\1", 4))}},
      {"unknown", {"", repeated(Http2Frame::kUnknown, 0, "")}},
      {"empty_data", {call, repeated(Http2Frame::kData, 1, "")}},
  };
}

// A connection, made anew when it was cut off.
class Sender {
 public:
  Sender(std::string socket, Kind kind) : socket_(std::move(socket)), kind_(std::move(kind)) {}

  // false: turned away for a minute.
  bool some_more() {
    if (!connection_) {
      connection_ = std::make_unique<Http2Connection>(socket_);
      if (connection_->send(kind_.first)) return true;
    } else if (connection_->send(kind_.again) && connection_->listen_in()) {
      return true;
    }
    return is_let_in_again();
  }

 private:
  bool is_let_in_again() {
    const bool turned_away = connection_->heard().find("in a minute") != std::string::npos;
    connection_.reset();
    say("cut off");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return !turned_away;
  }

  const std::string socket_;
  const Kind kind_;
  std::unique_ptr<Http2Connection> connection_;
};

// Calls whose messages are sent but for their last bytes.
class HalfSent {
 public:
  static constexpr std::uint32_t kStreams = 100;

  explicit HalfSent(const std::string& socket) : connection_(socket), left_(kStreams, kMessage - 1'024) {
    std::string begin;
    for (std::uint32_t i = 0; i < kStreams; ++i)
      begin += http2_frame(Http2Frame::kHeaders, kHttp2EndHeaders, 2 * i + 1, call_headers(kMethod));
    alive_ = connection_.send(begin);
    for (std::uint32_t i = 0; alive_ && i < kStreams; ++i)
      alive_ = connection_.send_data(2 * i + 1, grpc_message(kMessage, "")).has_value();
  }

  // false: the connection has ended.
  bool some_more() {
    for (std::uint32_t i = 0; alive_ && i < kStreams; ++i) {
      const std::optional<std::size_t> sent =
          connection_.send_data(2 * i + 1, std::string(std::min<std::size_t>(left_[i], 16'384), 'x'));
      alive_ = sent.has_value();
      left_[i] -= sent.value_or(0);
    }
    return alive_;
  }

 private:
  Http2Connection connection_;
  std::vector<std::size_t> left_;
  bool alive_ = false;
};

}  // namespace

int act_send_frames(const std::string& socket, Arguments arguments) {
  const auto all = kinds();
  const auto kind = all.find(option(arguments, "kind"));
  if (kind == all.end()) throw std::runtime_error("send_frames: no such kind");
  std::vector<std::unique_ptr<Sender>> senders;
  for (int i = 0; i < std::stoi(option(arguments, "connections", "4")); ++i)
    senders.push_back(std::make_unique<Sender>(socket, kind->second));
  say("begins");
  while (true) {
    for (const auto& sender : senders) {
      if (sender->some_more()) continue;
      say("turned away");
      return 0;
    }
  }
}

int act_send_halves(const std::string& socket, Arguments arguments) {
  std::vector<std::unique_ptr<HalfSent>> connections(std::stoul(option(arguments, "connections", "20")));
  say("begins");
  while (true) {
    for (auto& connection : connections) {
      if (connection && connection->some_more()) continue;
      if (connection) say("cut off");
      connection = std::make_unique<HalfSent>(socket);
    }
    say("sent");
  }
}

}  // namespace millrace
