// "filling 9.9 GB of shared memory  0:07" on a terminal, from a second on, for as long as this lives; a thread draws
// it. Thread-bound(its owner).
#pragma once

#include <string>
#include <thread>

#include "proto/base/mutex.h"

namespace millrace::cli {

class WaitingLine {
 public:
  explicit WaitingLine(std::string text);
  ~WaitingLine();  // takes the line away
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;

 private:
  void draw();

  const std::string text_;
  Mutex mutex_;
  Condition changed_;
  bool over_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace millrace::cli
