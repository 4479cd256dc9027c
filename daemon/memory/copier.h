// Copies and zeroes bytes of host memory beside the control thread, on a thread of its own. Users take turns of kTurn, and
// what one user waits for takes turns among itself, so that nobody's repair of a whole slot holds up another's of one
// image.
//
// Thread-safe.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "proto/base/bytes.h"
#include "proto/base/ids.h"
#include "proto/base/mutex.h"

namespace millrace {

// `from` empty: `to` becomes zeroes. Otherwise they have the same size and may overlap.
struct Copy {
  MutableByteView to;
  ByteView from;
};

class Copier {
 public:
  static constexpr Bytes kTurn = 16_MiB;  // a copy onto its own later bytes is not cut

  explicit Copier(boost::asio::io_context& control);
  ~Copier();  // finishes what it has begun and what waits
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  // All of them in order; then `done` is called once, on the control thread. It keeps the bytes alive until then.
  void run(UserId user, std::vector<Copy> copies, std::function<void()> done) MILLRACE_EXCLUDES(mutex_);

 private:
  struct Job {
    std::vector<Copy> copies;
    std::size_t next = 0;   // of them, and
    std::size_t begun = 0;  // bytes of that one
    std::function<void()> done;
  };
  struct OfUser {
    UserId user{};
    std::deque<Job> jobs;  // never empty
  };

  static void take_turn(Job& job);
  void queue(UserId user, Job job) MILLRACE_REQUIRES(mutex_);

  void run_thread() MILLRACE_EXCLUDES(mutex_);

  boost::asio::io_context& control_;
  Mutex mutex_;
  Condition changed_;
  std::deque<OfUser> users_ MILLRACE_GUARDED_BY(mutex_);  // by whose turn it is
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace millrace
