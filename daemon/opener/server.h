// The opener at work: accepts the daemon's connections, has a thread for each, and forgets clients whose connections
// have ended.
//
//   main thread    listener, ends of clients' and of the daemon's connections, signals: epoll
//   mr-open-N      one connection: a request, its answer, the next one. Whatever blocks on a mount blocks this one alone
//
// Thread-bound(main).
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/opener/introduction.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class OpenerServer {
 public:
  struct Options {
    std::vector<std::string> roots;  // absolute
    // The roots that the settings file names now, for the daemon says that it has changed. Called by any thread.
    std::function<Result<std::vector<std::string>>()> read_roots;
    IntroductionRules rules;
    std::optional<uid_t> daemon;     // the only user who may connect; none: every user whom the socket's mode lets
    std::size_t connections = 1024;  // of the daemon's, each with a thread
  };

  // `listener`: a listening SOCK_SEQPACKET socket. Blocks SIGTERM and SIGINT in this thread and those that follow.
  static Result<std::unique_ptr<OpenerServer>> create(UniqueFd listener, Options options);
  ~OpenerServer();

  // Serves until SIGTERM or SIGINT. Threads may be waiting on a mount then: the process is to end at once.
  void run();

 private:
  struct State;
  explicit OpenerServer(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace millrace
