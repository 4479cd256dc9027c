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
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "millrace/batch.h"
#include "millrace/cache.h"
#include "millrace/epoch.h"
#include "millrace/export.h"
#include "millrace/findings.h"
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
  // `address`: a path or "unix:PATH"; empty: $MILLRACE_SOCKET, else kDefaultSocket. While a daemon that systemd starts is
  // not there, it is waited for until `timeout`. kUnavailable: nobody answers there; says how to start it.
  static Result<Client> connect(std::string address = {},
                                std::chrono::milliseconds timeout = std::chrono::milliseconds{5'000});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // kInvalid: slot_bytes is needed, because the recipe does not fix the size. kExhausted: says which budget, and how to
  // raise it. kPrecondition: library and daemon do not fit together. (Of a daemon that is older, but does fit, only
  // what it does not know is kUnsupported, where it is asked for.)
  // In a GPU's memory, also kNotFound: the daemon has no such memory; says which it has. kUnsupported: this process has no
  // driver of NVIDIA's, or does not see that GPU; says what to do. kPrecondition: it was forked from one that used CUDA, or
  // CUDA fails.
  Result<Session> open_session(const SessionOptions& options = {});

  // One round trip to the health service; how long it took. kUnavailable: not serving.
  Result<std::chrono::nanoseconds> ping(std::chrono::milliseconds timeout = std::chrono::milliseconds{5'000});
  Result<Statistics> statistics(std::chrono::milliseconds timeout = std::chrono::milliseconds{5'000});
  Result<std::vector<Device>> devices(std::chrono::milliseconds timeout = std::chrono::milliseconds{5'000});

  // What bounds a session now, or with 0 every session, in words and figures; `history`: SessionFindings::history as well.
  // kNotFound: there is no such session. kUnsupported: the daemon is older and cannot.
  Result<std::vector<SessionFindings>> explain(std::uint64_t session = 0, bool history = false,
                                               std::chrono::milliseconds timeout = std::chrono::milliseconds{5'000});

  // Orders about what the daemon keeps of images, for its own user and root: kDenied for others. kPrecondition: nothing
  // is kept there; says why. kExhausted: it is being done already. kUnsupported: the daemon is older and cannot.
  Result<DroppedCache> drop_cache(const DropCache& what = {},
                                  std::chrono::milliseconds timeout = std::chrono::milliseconds{300'000});
  // Has everything on disk read, and what is wrong forgotten. `goes_on`, if any, is called several times a second; false
  // from it ends the work: kCancelled. kDeadline: the daemon said nothing for `silence`.
  Result<VerifiedCache> verify_cache(const std::function<bool(const VerifiedCache& so_far)>& goes_on = {},
                                     std::chrono::milliseconds silence = std::chrono::milliseconds{60'000});

  const std::string& socket() const noexcept;  // the path that it is connected to

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace client
}  // namespace millrace
