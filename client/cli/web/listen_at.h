// Where this server listens: --listen, or sockets that a service manager passes. Functions, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace::cli {

// A listening socket, and what to call it: "http://127.0.0.1:9464/" or "unix:/run/x.sock". One that lies at a path is
// removed with it. Thread-bound(its owner).
class WebListener {
 public:
  WebListener(UniqueFd socket, std::string name, std::string path = {});
  WebListener(WebListener&&) noexcept;
  WebListener& operator=(WebListener&&) = delete;
  ~WebListener();

  UniqueFd take_socket() { return std::move(socket_); }
  const std::string& name() const { return name_; }

 private:
  UniqueFd socket_;
  std::string name_;
  std::string path_;  // empty: of nothing that is ours to remove
};

// `where`: "ADDRESS:PORT" ("127.0.0.1:9464", "[::]:0", "localhost:9464") or "unix:PATH", for the user and group of this
// process. kInvalid: neither.
Result<WebListener> listen_at(const std::string& where);

// Of $LISTEN_FDS; empty: none were passed. kInvalid: something else than listening stream sockets was.
Result<std::vector<WebListener>> passed_web_listeners();

}  // namespace millrace::cli
