// Resolves one path as the kernel would for a caller: component by component, each opened from the one before,
// symbolic links expanded here: a relative one may not climb out of its root, an absolute one must lead beneath a root
// again. Who is asked for the caller's right to search, the WalkRules say. Thread-bound(its owner).
//
// Links can make a short path a long way, and on a file server every step waits for answers: a walk has a limit on its
// steps and, where others wait for it, one on its time.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

// What a path leads to: an O_PATH descriptor and its fstat. Needs no right to the thing itself.
struct Found {
  UniqueFd fd;
  struct stat status {};
};

// What a walk goes by.
class WalkRules {
 public:
  // Where a walk begins: a root, and what of the path lies beneath it.
  struct Start {
    std::shared_ptr<const void> keep;  // keeps the descriptor
    int root = -1;
    std::string_view rest;  // relative; empty: the root itself
  };

  virtual ~WalkRules() = default;
  // Of an absolute path. Errors end the walk: beneath no root, a root that is not there, a folder above the root that
  // the caller may not search.
  virtual Result<Start> start(std::string_view path) const = 0;
  virtual bool may_search(int folder, const struct stat& status) const = 0;
  // What it means that the kernel refuses to look up a name in a folder that may_search() allows.
  virtual Error refused() const = 0;
};

class PathWalk {
 public:
  using Clock = std::chrono::steady_clock;

  // `longest`: how long the walk may take. The first kStepsGranted steps may take longer: if those do, it is the file
  // server that is slow, and not the path that is long.
  explicit PathWalk(const WalkRules& rules, Clock::duration longest = Clock::duration::max())
      : rules_(rules), longest_(longest) {}
  static constexpr std::size_t kStepsGranted = 64;

  // kDenied: beyond the roots, or the caller may not search a folder on the way; kNotFound, also of a root; kInvalid:
  // too deep, too many links, too many steps, too long.
  Result<Found> walk(std::string_view path_untrusted);

 private:
  Result<void> start(std::string_view path_untrusted);
  Result<void> check_length() const;
  Result<std::optional<Found>> step(const std::string& component);
  Result<Found> look_up(const std::string& name) const;
  Result<void> enter(Found folder);
  Result<void> follow(const Found& link);
  Result<void> check_search() const;
  void put_off(std::string_view components);
  int here() const { return folders_.empty() ? start_.root : folders_.back().fd.get(); }

  const WalkRules& rules_;
  const Clock::duration longest_;
  const Clock::time_point begun_ = Clock::now();
  WalkRules::Start start_;
  std::vector<Found> folders_;      // from beneath the root down to where the walk is
  std::vector<std::string> to_do_;  // components, the next one last
  std::size_t steps_ = 0;
  int links_ = 0;
};

}  // namespace millrace
