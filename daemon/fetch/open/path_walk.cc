#include "daemon/fetch/open/path_walk.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "daemon/fetch/host_shortage.h"
#include "daemon/fetch/open/refusals.h"

namespace millrace {
namespace {

constexpr int kMostLinks = 40;            // as the kernel
constexpr std::size_t kDeepest = 128;     // folders beneath a root: each is an open descriptor
constexpr std::size_t kMostSteps = 4096;  // components, those of links included, gone through or waiting

Result<std::string> target_of(int link) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = readlinkat(link, "", target.data(), target.size());
  if (size < 0) return io_error("reading a symbolic link", errno);
  return std::string(target.data(), static_cast<std::size_t>(size));
}

Result<Found> again(int fd) {
  Found found;
  found.fd = UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!found.fd || fstat(found.fd.get(), &found.status) != 0) return io_error("opening the folder", errno);
  return found;
}

}  // namespace

Result<Found> PathWalk::walk(std::string_view path_untrusted) {
  MILLRACE_TRY_VOID(start(path_untrusted));
  while (!to_do_.empty()) {
    const std::string component = std::exchange(to_do_.back(), {});
    to_do_.pop_back();
    ++steps_;
    MILLRACE_TRY_VOID(check_length());
    MILLRACE_TRY(std::optional<Found> found, step(component));
    if (!found) continue;
    if (!to_do_.empty()) return no_such_file();  // a file where a folder should be
    return *std::move(found);
  }
  return again(here());
}

Result<void> PathWalk::start(std::string_view path_untrusted) {
  MILLRACE_TRY(start_, rules_.start(path_untrusted));
  folders_.clear();
  put_off(start_.rest);
  return {};
}

Result<void> PathWalk::check_length() const {
  if (steps_ + to_do_.size() > kMostSteps)
    return Error{Code::kInvalid, "the symbolic links make a path that is too long"};
  if (steps_ > kStepsGranted && Clock::now() - begun_ > longest_)
    return Error{Code::kInvalid, "the symbolic links make a path that takes too long to follow: name where they lead"};
  return {};
}

// Something at last, if it is neither a folder to go into nor a link to follow.
Result<std::optional<Found>> PathWalk::step(const std::string& component) {
  if (component == ".") return std::optional<Found>{};
  MILLRACE_TRY_VOID(check_search());
  if (component == "..") {
    if (folders_.empty()) return not_readable();
    folders_.pop_back();
    return std::optional<Found>{};
  }
  MILLRACE_TRY(Found found, look_up(component));
  if (S_ISLNK(found.status.st_mode)) {
    MILLRACE_TRY_VOID(follow(found));
    return std::optional<Found>{};
  }
  if (S_ISDIR(found.status.st_mode)) {
    MILLRACE_TRY_VOID(enter(std::move(found)));
    return std::optional<Found>{};
  }
  return std::optional<Found>(std::move(found));
}

Result<Found> PathWalk::look_up(const std::string& name) const {
  Found found;
  found.fd = UniqueFd(openat(here(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found.fd) {
    if (errno == ENOENT || errno == ENOTDIR) return no_such_file();
    if (errno == EACCES) return rules_.refused();
    return io_error("following the path", errno);
  }
  if (fstat(found.fd.get(), &found.status) != 0) return io_error("following the path", errno);
  return found;
}

Result<void> PathWalk::enter(Found folder) {
  if (folders_.size() == kDeepest)
    return Error{Code::kInvalid,
                 "more than " + std::to_string(kDeepest) + " folders deep: move it up, or add a root nearer to it"};
  folders_.push_back(std::move(folder));
  return {};
}

Result<void> PathWalk::follow(const Found& link) {
  if (++links_ > kMostLinks)
    return Error{Code::kInvalid, "the symbolic links go round in circles, or are more than 40"};
  MILLRACE_TRY(const std::string target, target_of(link.fd.get()));
  if (target.starts_with('/')) return start(target);
  put_off(target);
  return {};
}

Result<void> PathWalk::check_search() const {
  if (!folders_.empty()) return rules_.may_search(here(), folders_.back().status) ? Result<void>() : not_readable();
  struct stat status {};
  if (fstat(here(), &status) != 0 || !rules_.may_search(here(), status)) return not_readable();
  return {};
}

// Before what is still to do. Empty components mean nothing, as to the kernel.
void PathWalk::put_off(std::string_view components) {
  while (!components.empty()) {
    const std::size_t slash = components.rfind('/');
    const std::string_view last = slash == components.npos ? components : components.substr(slash + 1);
    if (!last.empty()) to_do_.emplace_back(last);
    components = components.substr(0, slash == components.npos ? 0 : slash);
  }
}

}  // namespace millrace
