#include "daemon/fetch/root_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "daemon/fetch/host_want.h"
#include "daemon/observe/log.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

std::string without_slashes_at_the_end(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  return path;
}

// As realpath(3), but also of what is not there, or not yet.
std::string without_links(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // as the kernel
  std::vector<fs::path> to_do;    // the next one last
  const auto put_off = [&](const fs::path& components) {
    const std::vector<fs::path> parts(components.begin(), components.end());
    to_do.insert(to_do.end(), parts.rbegin(), parts.rend());
  };
  put_off(path);
  fs::path at = "/";
  for (int links = 0; !to_do.empty();) {
    const fs::path component = std::exchange(to_do.back(), {});
    to_do.pop_back();
    std::error_code no_link;
    const fs::path target = component == ".." ? fs::path() : fs::read_symlink(at / component, no_link);
    if (component == "..") {
      at = at.parent_path();
    } else if (!component.empty() && component != ".") {
      const bool follow = !no_link && ++links <= kMostLinks;
      if (follow) put_off(target);
      if (!follow) at /= component;
    }
  }
  return at.string();
}

std::string named(const std::string& root) {
  return "the root " + printable(root);
}

}  // namespace

RootFolder::RootFolder(const std::string& configured, Clock::duration look_every)
    : configured_(configured),
      spelled_(without_slashes_at_the_end(configured)),
      canonical_(without_slashes_at_the_end(without_links(configured))),
      look_every_(look_every) {
  Result<Opened> found = open_anew(configured_, canonical_);
  if (!found)
    log_warning(found.error().message +
                ": what lies beneath it is not served until it is there; it is looked for whenever a client asks");
  MutexLock lock(mutex_);
  if (found) opened_ = std::make_shared<const Opened>(*std::move(found));
  looked_ = Clock::now();
}

Result<void> RootFolder::look_for(const std::string& configured) {
  MILLRACE_TRY(const Opened found, open_anew(configured, without_slashes_at_the_end(without_links(configured))));
  static_cast<void>(found);
  return {};
}

Result<RootFolder::Opened> RootFolder::open_anew(const std::string& configured, const std::string& canonical) {
  Opened opened;
  UniqueFd at(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t slash = 0; at && slash < canonical.size();) {
    const std::size_t end = std::min(canonical.find('/', slash + 1), canonical.size());
    const std::string component = canonical.substr(slash + 1, end - slash - 1);
    UniqueFd next(openat(at.get(), component.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    opened.above.push_back(std::move(at));
    at = std::move(next);
    slash = end;
  }
  if (!at || fstat(at.get(), &opened.status) != 0) return io_error("opening " + named(configured), errno);
  opened.fd = std::move(at);
  return opened;
}

std::optional<std::size_t> RootFolder::name_in(std::string_view path) const {
  std::optional<std::size_t> length;
  for (const std::string* name : {&spelled_, &canonical_}) {
    const bool beneath = path.starts_with(*name) && (path.size() == name->size() || path[name->size()] == '/');
    if (beneath && (!length || name->size() < *length)) length = name->size();
  }
  return length;
}

// One thread's turn to look.
class RootFolder::Turn {
 public:
  explicit Turn(RootFolder& root) : root_(root), taken_(take()) {}
  ~Turn() {
    if (!taken_) return;
    MutexLock lock(root_.mutex_);
    root_.looking_ = false;
    root_.looked_ = Clock::now();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const { return taken_; }

 private:
  bool take() const {
    MutexLock lock(root_.mutex_);
    const Clock::duration interval = root_.opened_ ? root_.look_every_ : root_.look_every_ / 10;
    if (root_.looking_ || Clock::now() - root_.looked_ < interval) return false;
    root_.looking_ = true;
    return true;
  }

  RootFolder& root_;
  const bool taken_;
};

std::shared_ptr<const RootFolder::Opened> RootFolder::opened() {
  if (const Turn turn(*this); turn) settle(open_anew(configured_, canonical_));
  MutexLock lock(mutex_);
  return opened_;
}

bool RootFolder::missing() const {
  MutexLock lock(mutex_);
  return opened_ == nullptr;
}

// Only that there is no such folder ends what was found before: a daemon without descriptors, or a file server that
// does not answer, say nothing about it.
void RootFolder::settle(Result<Opened> found) {
  std::shared_ptr<const Opened> now;
  if (found) now = std::make_shared<const Opened>(*std::move(found));
  const bool gone = !now && found.error().code == Code::kNotFound;
  std::shared_ptr<const Opened> before;
  {
    MutexLock lock(mutex_);
    before = opened_;
    if (now || gone) opened_ = now;
  }
  if (!before && now) log_info(named(configured_) + " is there now");
  if (before && gone) log_warning(named(configured_) + " is not there any more: " + found.error().message);
  const bool other =
      before && now && (before->status.st_dev != now->status.st_dev || before->status.st_ino != now->status.st_ino);
  if (other)
    log_info(named(configured_) + " is another folder than before: it was mounted over, unmounted or made again");
}

}  // namespace millrace
