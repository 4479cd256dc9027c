// A few descriptors that a fetch thread holds for nothing, so that there are some for a file when others have taken all
// that the process may have. Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <vector>

#include "proto/base/unique_fd.h"

namespace millrace {

class SpareDescriptors {
 public:
  // Enough for a file in a folder some levels beneath its root; a deeper one, for a caller whose rights are not known
  // yet, needs one a level.
  static constexpr std::size_t kEnough = 8;
  // For each of `threads`: kEnough, but together no more than an eighth of what this process may open.
  static std::size_t share(std::size_t threads);

  explicit SpareDescriptors(std::size_t count) : count_(count) { fill(); }

  // Takes those that are missing, as far as there are any.
  void fill();
  // Closes them, for others to open. false: there were none, or as many can be had beside them, so that it was not
  // descriptors that somebody lacked.
  bool give_up();

 private:
  std::size_t count_;
  std::vector<UniqueFd> held_;
};

}  // namespace millrace
