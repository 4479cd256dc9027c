// libmillrace: image preprocessing by the host's Millrace daemon. This header brings everything.
//
//   MILLRACE_TRY(auto client, millrace::Client::connect());
//   MILLRACE_TRY(auto session, client.open_session({.batch = 64, .recipe = millrace::Recipe::train(224)}));
//   MILLRACE_TRY(auto dataset, session.open_dataset("/data/imagenet/train"));
//   auto epoch = session.epoch(dataset, {.shuffle = true});
//   for (millrace::Batch& batch : epoch) ...
//
// No exception leaves the library (running out of memory ends the process). Every call that waits has a deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "millrace/batch.h"
#include "millrace/epoch.h"
#include "millrace/export.h"
#include "millrace/input_ring.h"
#include "millrace/recipe.h"
#include "millrace/result.h"
#include "millrace/session.h"
#include "millrace/statistics.h"
#include "millrace/tensor.h"

namespace millrace {
inline namespace client {

inline constexpr const char* kDefaultSocket = "/run/millrace/millrace.sock";

// This library's version, "0.1.0".
MILLRACE_API std::string library_version();

// A connection to the daemon. Thread-safe. Move-only; sessions do not need it once they are open.
class MILLRACE_API Client {
 public:
  // `address`: a path or "unix:PATH"; empty: $MILLRACE_SOCKET, else kDefaultSocket. kUnavailable: nobody answers there;
  // says how to start it.
  static Result<Client> connect(std::string address = {},
                                std::chrono::milliseconds timeout = std::chrono::milliseconds{5'000});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // kInvalid: slot_bytes is needed, because the recipe does not fix the size. kExhausted: says which budget, and how to
  // raise it. kPrecondition: library and daemon do not fit together. (Of a daemon that is older, but does fit, only
  // what it does not know is kUnsupported, where it is asked for.)
  Result<Session> open_session(const SessionOptions& options = {});

  // One round trip to the health service; how long it took. kUnavailable: not serving.
  Result<std::chrono::nanoseconds> ping(std::chrono::milliseconds timeout = std::chrono::milliseconds{5'000});
  Result<Statistics> statistics(std::chrono::milliseconds timeout = std::chrono::milliseconds{5'000});
  Result<std::vector<Device>> devices(std::chrono::milliseconds timeout = std::chrono::milliseconds{5'000});

  const std::string& socket() const noexcept;  // the path that it is connected to

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace client
}  // namespace millrace
