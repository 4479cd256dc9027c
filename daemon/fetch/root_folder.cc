#include "daemon/fetch/root_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "daemon/fetch/host_want.h"
#include "daemon/observe/log.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

std::string named(const std::string& root) {
  return "the root " + printable(root);
}

}  // namespace

RootFolder::RootFolder(const std::string& configured, Clock::duration look_every)
    : name_(configured), look_every_(look_every) {
  Result<Opened> found = open_anew(name_);
  if (!found)
    log_warning(found.error().message +
                ": what lies beneath it is not served until it is there; it is looked for whenever a client asks");
  MutexLock lock(mutex_);
  if (found) opened_ = std::make_shared<const Opened>(*std::move(found));
  looked_ = Clock::now();
}

Result<void> RootFolder::look_for(const std::string& configured) {
  MILLRACE_TRY(const Opened found, open_anew(RootName(configured)));
  static_cast<void>(found);
  return {};
}

Result<RootFolder::Opened> RootFolder::open_anew(const RootName& name) {
  const std::string& canonical = name.canonical();
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
  if (!at || fstat(at.get(), &opened.status) != 0) return io_error("opening " + named(name.configured()), errno);
  opened.fd = std::move(at);
  return opened;
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
  if (const Turn turn(*this); turn) settle(open_anew(name_));
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
  if (!before && now) log_info(named(configured()) + " is there now");
  if (before && gone) log_warning(named(configured()) + " is not there any more: " + found.error().message);
  const bool other =
      before && now && (before->status.st_dev != now->status.st_dev || before->status.st_ino != now->status.st_ino);
  if (other)
    log_info(named(configured()) + " is another folder than before: it was mounted over, unmounted or made again");
}

}  // namespace millrace
