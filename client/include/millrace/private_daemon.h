// A daemon of one's own: for tests, notebooks and machines without the service. It listens in a fresh folder that only
// this user can enter, and stops with its owner. The seek indexes that it makes are kept in $XDG_STATE_HOME/millrace or
// ~/.local/state/millrace, which all of a user's private daemons share.
//
//   MILLRACE_TRY(auto daemon, millrace::PrivateDaemon::start({.roots = {"/data"}, .lanes = 2}));
//   MILLRACE_TRY(auto client, millrace::Client::connect(daemon.socket()));
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "millrace/export.h"
#include "millrace/result.h"

namespace millrace {
inline namespace client {

struct PrivateDaemonOptions {
  std::vector<std::string> roots{};  // folders that it may read; relative ones are made absolute
  std::uint32_t lanes = 0;           // CPU lanes; 0: one a core
  std::string program{};             // empty: $MILLRACE_DAEMON, else `millraced` beside this executable, else in $PATH
  std::vector<std::string> arguments{};       // further ones, after the library's own
  std::chrono::milliseconds timeout{10'000};  // until it listens
};

// Thread-bound(its owner). The kernel stops the daemon if the thread that started it dies first, killed or not: start
// it from one that lasts.
class MILLRACE_API PrivateDaemon {
 public:
  // kNotFound: no millraced; says where it was looked for. kUnavailable: it ended or did not listen in time, with what
  // it wrote last.
  static Result<PrivateDaemon> start(const PrivateDaemonOptions& options = {});
  PrivateDaemon(PrivateDaemon&&) noexcept;
  PrivateDaemon& operator=(PrivateDaemon&&) noexcept;
  ~PrivateDaemon();  // stop(), and its folder goes

  const std::string& socket() const noexcept;  // for Client::connect
  std::int32_t pid() const noexcept;
  std::string log() const;  // what it wrote to stderr, the last 64 KiB

  // SIGTERM, so that it drains, then SIGKILL at the end of `patience`. Its exit status: 0 after draining, 128 + signal
  // if one ended it. Idempotent.
  Result<int> stop(std::chrono::milliseconds patience = std::chrono::milliseconds{10'000});

 private:
  struct State;
  explicit PrivateDaemon(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace client
}  // namespace millrace
