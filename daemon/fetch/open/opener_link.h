// The daemon's side of the opener (daemon/opener): a process that opens files as the client who asks for them, so that
// the kernel decides, for that very user. Introduces clients to it, asks it, waits for it, and connects again when it
// was started anew; then it introduces the clients again, who do not notice.
//
// A file server that does not answer holds up what asks it, and little else. Each root has connections of its own, at
// most as many as there are threads that ask. Who has waited `patience` gives up; that connection is of no use until
// the late reply has come. While a root has such a connection, one thread at a time waits for that root; while it has
// no other, none does: what is asked of it fails at once, as the daemon's want.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/fetch/open/opener_channels.h"
#include "daemon/fetch/open/opener_message.h"
#include "daemon/model/caller.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class OpenerLink {
 public:
  struct Options {
    std::string socket;             // of the opener
    bool once_there = false;        // there need not be one: none is missed until there has been one
    std::size_t connections = 1;    // at most, for each root
    std::size_t introductions = 1;  // connections for those, at most
    std::chrono::milliseconds patience{2'000};
  };

  explicit OpenerLink(Options options);
  ~OpenerLink();

  // Whether files of callers are opened by it, from now on for ever: one that has gone is waited for, because without
  // it other files would be readable.
  bool serves();

  // Has it read its roots again, as the daemon has. kUnavailable: it does not answer, or says why it has not.
  Result<void> read_settings();

  struct Opened {
    OpenAnswer answer;  // as of the wire; without an answer, its error is kUnavailable
    UniqueFd fd;        // if answer.descriptor
  };
  // What became of each name, all beneath `root`, by its name. REQUIRES: 1 to kOpenerMostNames names of at most kOpenerLongestName
  // bytes.
  std::vector<Opened> open(const std::string& root, std::span<const std::string_view> names, OpenerWhat what,
                           const Caller& caller);

 private:
  // What is known of a root: how to ask about it, and what the log has said.
  struct Root {
    explicit Root(const Options& options) : channels(options.socket, options.connections, options.patience) {}

    void note(const Error* trouble) MILLRACE_EXCLUDES(mutex);

    OpenerChannels channels;
    Mutex mutex;
    bool silent MILLRACE_GUARDED_BY(mutex) = false, said MILLRACE_GUARDED_BY(mutex) = false;
    std::chrono::steady_clock::time_point next_line MILLRACE_GUARDED_BY(mutex);
  };

  struct Received {
    OpenerReplyMessage message;
    std::vector<UniqueFd> descriptors;
  };

  Result<Received> exchange(OpenerChannels& channels, std::span<const std::byte> request, OpenerNumber number,
                            std::span<const int> descriptors);
  Root& root_of(const std::string& name) MILLRACE_EXCLUDES(mutex_);
  Result<OpenerCaller> introduce(const HandoffConnection& connection);
  Result<Received> ask(Root& root, OpenFilesRequest request, const Caller& caller);
  const Options options_;
  std::atomic<bool> found_;  // one was there. Writers, readers: any thread. Publishes nothing but itself
  std::atomic<std::int64_t> looked_{0};
  std::atomic<bool> told_{false};  // it may have been started before the settings were what they are. As found_
  std::atomic<std::uint64_t> next_number_{1};
  OpenerChannels introductions_;
  Mutex mutex_;
  std::map<std::string, Root> roots_ MILLRACE_GUARDED_BY(mutex_);  // every one that was ever asked about
};

}  // namespace millrace
