// Resolves one path as the kernel would for the caller: component by component, each opened from the one before, search
// permission asked of every folder on the way from "/", symbolic links expanded here. Thread-bound(its owner).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/fetch/roots.h"

namespace millrace {

class PathWalk {
 public:
  // A trusted caller's permissions are not asked.
  PathWalk(const Roots& roots, const Caller& caller)
      : roots_(roots), caller_(caller), trusted_(roots.rights().is_trusted(caller)) {}

  // kDenied: beyond the roots, or the caller may not search a folder on the way; kNotFound, also of a root; kInvalid:
  // too deep, too many links.
  Result<Roots::Found> walk(std::string_view path_untrusted);

 private:
  Result<void> start(std::string_view path_untrusted);
  Result<std::optional<Roots::Found>> step(const std::string& component);
  Result<void> enter(Roots::Found folder);
  Result<void> follow(const Roots::Found& link);
  Result<void> check_search() const;
  bool may_search(int folder, const struct stat& status) const;
  void put_off(std::string_view components);
  int here() const { return folders_.empty() ? root_->fd.get() : folders_.back().fd.get(); }

  const Roots& roots_;
  const Caller& caller_;
  const bool trusted_;
  std::shared_ptr<const RootFolder::Opened> root_;
  std::vector<Roots::Found> folders_;  // from beneath the root down to where the walk is
  std::vector<std::string> to_do_;     // components, the next one last
  int links_ = 0;
};

}  // namespace millrace
