#include "client/cli/web/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace millrace::cli {
namespace {

constexpr std::chrono::milliseconds kPause{100};        // without descriptors
constexpr std::chrono::milliseconds kEndWithin{2'000};  // of connections, once it stops

int family_of_socket(int socket) {
  int family = AF_UNSPEC;
  socklen_t length = sizeof family;
  ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &length);
  return family;
}

}  // namespace

HttpServer::HttpServer(boost::asio::io_context& context, std::vector<UniqueFd> listeners, const HttpLimits& limits,
                       const HostNames& names, HttpConnection::Answerer answer)
    : context_(context),
      limits_(limits),
      shared_{.limits = limits,
              .names = names,
              .answer = std::move(answer),
              .read =
                  [this](HttpConnection& connection) {
                    ++requests_;
                    connections_.splice(connections_.end(), connections_, place_of(connection));
                  },
              .ended =
                  [this](HttpConnection& connection) {
                    connections_.erase(place_of(connection));
                    if (stopping_ && connections_.empty()) later_.cancel();
                    if (!stopping_)
                      for (Listener* one : std::exchange(held_, {})) wait(*one);
                  }},
      later_(context) {
  for (UniqueFd& listener : listeners) listeners_.emplace_back(context, listener.release());
}

HttpServer::Connections::iterator HttpServer::place_of(const HttpConnection& connection) {
  return std::find_if(connections_.begin(), connections_.end(),
                      [&](const auto& one) { return one.get() == &connection; });
}

HttpServer::~HttpServer() {
  stopping_ = true;
  while (!connections_.empty()) connections_.front()->close();
}

void HttpServer::start() {
  for (Listener& listener : listeners_) wait(listener);
}

void HttpServer::stop() {
  stopping_ = true;
  boost::system::error_code ignored;
  for (Listener& listener : listeners_) listener.close(ignored);
  const auto open = connections_;
  for (const auto& connection : open) connection->close_after_answer();
  later_.expires_after(kEndWithin);
  if (connections_.empty()) return;
  later_.async_wait([this](boost::system::error_code cancelled) {
    while (!cancelled && !connections_.empty()) connections_.front()->close();
  });
}

void HttpServer::wait(Listener& listener) {
  listener.async_wait(Listener::wait_read, [this, &listener](boost::system::error_code error) {
    if (!error && !stopping_) take(listener);
  });
}

void HttpServer::take(Listener& listener) {
  if (!make_room()) {
    held_.push_back(&listener);  // until a connection ends, or a reader proves slow
    return wait_later();
  }
  UniqueFd socket(::accept4(listener.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) {
    const bool shortage = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (!shortage) return wait(listener);
    held_.push_back(&listener);
    return wait_later();
  }
  const int family = family_of_socket(socket.get());
  HttpConnection::Socket taken(context_);
  boost::system::error_code error;
  taken.assign(boost::asio::generic::stream_protocol(family, 0), socket.get(), error);
  if (!error) {
    socket.release();
    connections_.push_back(std::make_shared<HttpConnection>(std::move(taken), shared_));
    connections_.back()->start();
  }
  wait(listener);
}

void HttpServer::wait_later() {
  later_.expires_after(kPause);
  later_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled || stopping_) return;
    for (Listener* one : std::exchange(held_, {})) wait(*one);
  });
}

bool HttpServer::make_room() {
  if (connections_.size() < limits_.connections) return true;
  auto goes = std::find_if(connections_.begin(), connections_.end(), [](const auto& one) { return one->idle(); });
  if (goes == connections_.end())
    goes =
        std::find_if(connections_.begin(), connections_.end(), [](const auto& one) { return one->waits_for_client(); });
  if (goes == connections_.end()) return false;
  ++evicted_;
  const std::shared_ptr<HttpConnection> oldest = *goes;
  oldest->close();
  return true;
}

}  // namespace millrace::cli
