// One connection of a program that asks by HTTP/1.1: request by request, GET and HEAD alone. All is bounded: bytes of a
// request's head, the time to send it, the time to take an answer, the time without a request.
//
//   idle ──first byte──▶ reading ──head──▶ answering ──answer──▶ writing ──▶ idle, or closed
//
// Thread-bound(the server's io_context).
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/span_body.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/web/host_names.h"

namespace millrace::cli {

struct WebRequest {
  std::string path_untrusted;   // "/metrics"
  std::string query_untrusted;  // "history=1"
  std::string accept_untrusted;
};

struct WebAnswer {
  unsigned status = 200;
  std::string_view content_type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;
  std::vector<std::pair<std::string_view, std::string>> headers;  // further ones
};
WebAnswer words(unsigned status, std::string text);

struct HttpLimits {
  std::size_t head_bytes = 8192;                  // of a request
  std::chrono::milliseconds head_within{10'000};  // to send that
  std::chrono::milliseconds answer_within{10'000};
  std::chrono::milliseconds written_within{20'000};  // to take the answer
  std::chrono::milliseconds idle_for{75'000};        // without a request
  std::size_t connections = 64;
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Reply = std::function<void(WebAnswer)>;
  // Calls `reply` once, now or later, on the same thread.
  using Answerer = std::function<void(const WebRequest&, Reply reply)>;

  // What connections have in common; outlives them.
  struct Shared {
    const HttpLimits& limits;
    const HostNames& names;
    Answerer answer;
    std::function<void(HttpConnection&)> read;   // a request was read
    std::function<void(HttpConnection&)> ended;  // it is closed, once
  };

  HttpConnection(Socket socket, const Shared& shared);

  void start();
  bool idle() const { return phase_ == Phase::kIdle; }
  // Whether it keeps this server waiting: for a request, the rest of one, or, longer than a moment, for taking an answer.
  bool waits_for_client() const;
  void close();
  void close_after_answer();  // at once while it is idle

 private:
  enum class Phase : std::uint8_t { kIdle, kReading, kAnswering, kWriting, kClosed };
  using Response = boost::beast::http::response<boost::beast::http::span_body<const char>>;

  // Which ends with the connection after `within`, unless another phase begins.
  void enter(Phase phase, std::chrono::milliseconds within);
  void wait_for_request();
  void read_head();
  void has_head(boost::system::error_code error);
  // What is wrong with the request, if anything is.
  std::optional<WebAnswer> complaint() const;
  void send(WebAnswer answer);
  void sent(boost::system::error_code error);
  // Reads what the peer still sends, for a moment: closed before that, the answer would be lost.
  void linger(std::size_t so_far);

  Socket socket_;
  const Shared& shared_;
  boost::asio::steady_timer deadline_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> request_;
  WebAnswer answer_;
  std::optional<Response> response_;
  std::optional<boost::beast::http::response_serializer<boost::beast::http::span_body<const char>>> serializer_;
  Phase phase_ = Phase::kIdle;
  std::chrono::steady_clock::time_point since_{};  // it is in that phase
  bool last_ = false;                              // the connection ends with the answer
};

}  // namespace millrace::cli
