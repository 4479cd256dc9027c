// Whether what a session reads comes fast or slowly, as its last portion took: from a file server that is busy, a disk
// that is about to fail, or because the files are giants. Those that read slowly have no more fetch threads together
// than the settings say; one more than that there is, and it is for the others (see Reading). Thread-bound(control).
#pragma once

#include <chrono>

namespace millrace {

class ReadingPace {
 public:
  // A portion of a warm disk takes a tenth of it.
  static constexpr std::chrono::milliseconds kSlow{10};

  // Nobody knows of a new session, so it is taken for slow until its first portion is here.
  bool slow() const { return slow_; }
  void note(std::chrono::microseconds portion) { slow_ = portion >= kSlow; }

 private:
  bool slow_ = true;
};

}  // namespace millrace
