#include "client/cli/web/http_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include <algorithm>
#include <array>

namespace millrace::cli {
namespace {

namespace http = boost::beast::http;

constexpr std::chrono::milliseconds kLinger{1'000};
constexpr std::chrono::milliseconds kSlowReader{1'000};
constexpr std::size_t kLingerBytes = 64 * 1024;

// Of every answer: nobody frames, stores, guesses or shares what is here.
constexpr std::pair<std::string_view, std::string_view> kAlways[] = {
    {"Cache-Control", "no-store"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};
constexpr std::string_view kPolicy = "Content-Security-Policy";
constexpr std::string_view kNoPage = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

boost::beast::string_view beast(std::string_view text) {
  return {text.data(), text.size()};
}

std::string_view ours(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

// What a request asks for: "/metrics", or, as clients say to proxies, "http://gpu7:9464/metrics", whose name counts
// as the Host's does.
struct Target {
  std::string_view path;
  std::optional<std::string_view> host;
};

Target target_of(std::string_view text_untrusted) {
  constexpr std::string_view kScheme = "http://";
  if (!text_untrusted.starts_with(kScheme)) return {.path = text_untrusted, .host = std::nullopt};
  text_untrusted.remove_prefix(kScheme.size());
  const std::size_t end = std::min(text_untrusted.find_first_of("/?"), text_untrusted.size());
  const std::string_view path = text_untrusted.substr(end);
  return {.path = path.empty() ? "/" : path, .host = text_untrusted.substr(0, end)};
}

}  // namespace

WebAnswer words(unsigned status, std::string text) {
  return {.status = status, .body = std::make_shared<const std::string>(std::move(text) + "\n")};
}

HttpConnection::HttpConnection(Socket socket, const Shared& shared)
    : socket_(std::move(socket)),
      shared_(shared),
      deadline_(socket_.get_executor()),
      buffer_(shared.limits.head_bytes) {}

void HttpConnection::start() {
  wait_for_request();
}

bool HttpConnection::waits_for_client() const {
  if (phase_ == Phase::kWriting) return std::chrono::steady_clock::now() - since_ > kSlowReader;
  return phase_ == Phase::kIdle || phase_ == Phase::kReading;
}

void HttpConnection::close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  const auto self = shared_from_this();
  boost::system::error_code ignored;
  deadline_.cancel(ignored);
  socket_.close(ignored);
  shared_.ended(*this);
}

void HttpConnection::close_after_answer() {
  last_ = true;
  if (idle()) close();
}

void HttpConnection::enter(Phase phase, std::chrono::milliseconds within) {
  phase_ = phase;
  since_ = std::chrono::steady_clock::now();
  deadline_.expires_after(within);
  deadline_.async_wait([self = shared_from_this()](boost::system::error_code cancelled) {
    // One that was due as the next phase began is of that phase's time.
    if (!cancelled && self->deadline_.expiry() <= std::chrono::steady_clock::now()) self->close();
  });
}

void HttpConnection::wait_for_request() {
  if (last_) return close();
  if (buffer_.size() > 0) return read_head();
  enter(Phase::kIdle, shared_.limits.idle_for);
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](boost::system::error_code error) {
    if (self->phase_ == Phase::kClosed) return;
    error ? self->close() : self->read_head();
  });
}

void HttpConnection::read_head() {
  enter(Phase::kReading, shared_.limits.head_within);
  request_.emplace();
  request_->header_limit(static_cast<std::uint32_t>(shared_.limits.head_bytes));
  http::async_read_header(socket_, buffer_, *request_,
                          [self = shared_from_this()](boost::system::error_code error, std::size_t) {
                            if (self->phase_ != Phase::kClosed) self->has_head(error);
                          });
}

void HttpConnection::has_head(boost::system::error_code error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    last_ = true;
    return send(
        words(431, "the request's head is longer than " + std::to_string(shared_.limits.head_bytes) + " bytes"));
  }
  if (error.category() == http::make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message) {
    last_ = true;
    return send(words(400, "this is no request of HTTP/1.1"));
  }
  if (error) return close();
  shared_.read(*this);
  if (!request_->get().keep_alive()) last_ = true;
  if (auto wrong = complaint()) {
    last_ = true;
    return send(*std::move(wrong));
  }
  enter(Phase::kAnswering, shared_.limits.answer_within);
  const std::string_view target = target_of(ours(request_->get().target())).path;
  const std::size_t query = std::min(target.find('?'), target.size());
  WebRequest request{.path_untrusted = std::string(target.substr(0, query)),
                     .query_untrusted = std::string(target.substr(std::min(query + 1, target.size()))),
                     .accept_untrusted = std::string(ours(request_->get()[http::field::accept]))};
  shared_.answer(request, [self = shared_from_this()](WebAnswer answer) {
    if (self->phase_ == Phase::kAnswering) self->send(std::move(answer));
  });
}

std::optional<WebAnswer> HttpConnection::complaint() const {
  const auto& request = request_->get();
  const auto hosts = request.equal_range(http::field::host);
  const auto count = std::distance(hosts.first, hosts.second);
  if (count > 1 || (count == 0 && request.version() >= 11)) return words(400, "the request needs one Host");
  const std::optional<std::string_view> in_target = target_of(ours(request.target())).host;
  const bool known =
      (count == 0 || shared_.names.has(ours(hosts.first->value()))) && (!in_target || shared_.names.has(*in_target));
  if (!known) return words(421, "this server is not called so: `millrace web --host NAME` gives it a name");
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    WebAnswer answer = words(405, "GET and HEAD alone");
    answer.headers.emplace_back("Allow", "GET, HEAD");
    return answer;
  }
  // Of any transfer coding: what follows such a head would be read as a request of its own.
  if (request.count(http::field::transfer_encoding) > 0 || request_->content_length().value_or(0) > 0)
    return words(400, "a request has no body here");
  return std::nullopt;
}

void HttpConnection::send(WebAnswer answer) {
  enter(Phase::kWriting, shared_.limits.written_within);
  answer_ = std::move(answer);
  response_.emplace();
  response_->result(answer_.status);
  response_->keep_alive(!last_);
  response_->set("Content-Type", beast(answer_.content_type));
  for (const auto& [name, value] : kAlways) response_->set(beast(name), beast(value));
  response_->set(beast(kPolicy), beast(kNoPage));
  for (const auto& [name, value] : answer_.headers) response_->set(beast(name), value);
  response_->body() = {answer_.body->data(), answer_.body->size()};
  response_->prepare_payload();
  serializer_.emplace(*response_);
  const auto then = [self = shared_from_this()](boost::system::error_code error, std::size_t) {
    if (self->phase_ != Phase::kClosed) self->sent(error);
  };
  const bool head = request_ && request_->is_header_done() && request_->get().method() == http::verb::head;
  head ? http::async_write_header(socket_, *serializer_, then) : http::async_write(socket_, *serializer_, then);
}

void HttpConnection::sent(boost::system::error_code error) {
  serializer_.reset();
  response_.reset();
  answer_ = {};
  if (error) return close();
  if (!last_) return wait_for_request();
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  enter(Phase::kWriting, kLinger);
  linger(0);
}

void HttpConnection::linger(std::size_t so_far) {
  static std::array<char, 4096> rubbish;  // nobody reads it
  if (so_far >= kLingerBytes) return close();
  socket_.async_read_some(boost::asio::buffer(rubbish),
                          [self = shared_from_this(), so_far](boost::system::error_code error, std::size_t more) {
                            if (self->phase_ == Phase::kClosed) return;
                            error ? self->close() : self->linger(so_far + more);
                          });
}

}  // namespace millrace::cli
