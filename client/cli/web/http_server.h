// Takes connections from listening sockets and bounds how many there are: when as many are open as may be, a new one
// takes the place of the one that has been without a request for longest. Without such a one it takes the place of a
// client that sends its request, or takes its answer, slowly. While all are being answered, new ones wait in the kernel's
// queue. Thread-bound(its io_context).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <memory>
#include <vector>

#include "client/cli/web/http_connection.h"
#include "proto/base/unique_fd.h"

namespace millrace::cli {

class HttpServer {
 public:
  // `listeners`: listening stream sockets, non-blocking. All that is passed outlives the server.
  HttpServer(boost::asio::io_context& context, std::vector<UniqueFd> listeners, const HttpLimits& limits,
             const HostNames& names, HttpConnection::Answerer answer);
  ~HttpServer();

  void start();
  // No new connections; those that are answered end with their answer, or after a moment. The io_context then has no
  // more work of it.
  void stop();

  std::uint64_t requests() const { return requests_; }
  std::uint64_t evicted() const { return evicted_; }
  std::size_t connections() const { return connections_.size(); }

 private:
  using Listener = boost::asio::posix::stream_descriptor;
  using Connections = std::list<std::shared_ptr<HttpConnection>>;

  void wait(Listener& listener);
  void take(Listener& listener);
  void wait_later();  // until a moment has passed
  bool make_room();
  Connections::iterator place_of(const HttpConnection& connection);

  boost::asio::io_context& context_;
  const HttpLimits& limits_;
  HttpConnection::Shared shared_;
  std::list<Listener> listeners_;
  Connections connections_;  // the one whose last request is the oldest comes first
  boost::asio::steady_timer later_;
  std::vector<Listener*> held_;  // nothing is taken from these now
  bool stopping_ = false;
  std::uint64_t requests_ = 0;
  std::uint64_t evicted_ = 0;
};

}  // namespace millrace::cli
