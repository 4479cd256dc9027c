// Bad samples on stderr: the first of a kind in full, the others as a count at the end. Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "client/cli/text/progress.h"
#include "millrace/client.h"

namespace millrace::cli {

class BadLines {
 public:
  void add(const SampleError& sample, Progress& progress);
  void finish();  // "... and 147 more with the same reason: ..."

 private:
  static constexpr std::uint64_t kShownOfAReason = 20;
  static constexpr std::uint64_t kShownMost = 100;
  static constexpr std::size_t kReasonsMost = 1000;

  struct Reason {
    std::string text;  // of the first such message, without the file's first bytes
    std::uint64_t shown = 0, hidden = 0;
  };
  // By the message without its figures and the file's first bytes: they do not make another reason.
  std::map<std::string, Reason> reasons_;
  std::uint64_t shown_ = 0;
  std::uint64_t beyond_ = 0;  // of reasons that there is no room for
};

}  // namespace millrace::cli
