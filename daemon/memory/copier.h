// Copies and zeroes bytes of host memory beside the control thread, on a thread of its own. Those who wait take turns
// of kTurn, so that nobody's repair of a whole slot holds up another's of one image.
//
// Thread-safe.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "proto/base/bytes.h"
#include "proto/base/mutex.h"

namespace millrace {

// `from` empty: `to` becomes zeroes. Otherwise they have the same size and may overlap.
struct Copy {
  MutableByteView to;
  ByteView from;
};

class Copier {
 public:
  static constexpr Bytes kTurn = 16_MiB;  // rounded up to whole copies

  explicit Copier(boost::asio::io_context& control);
  ~Copier();  // finishes what it has begun and what waits
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  // All of them in order; then `done` is called once, on the control thread. It keeps the bytes alive until then.
  void run(std::vector<Copy> copies, std::function<void()> done) MILLRACE_EXCLUDES(mutex_);

 private:
  struct Job {
    std::vector<Copy> copies;
    std::size_t next = 0;
    std::function<void()> done;
  };

  void run_thread() MILLRACE_EXCLUDES(mutex_);

  boost::asio::io_context& control_;
  Mutex mutex_;
  Condition changed_;
  std::deque<Job> jobs_ MILLRACE_GUARDED_BY(mutex_);
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace millrace
