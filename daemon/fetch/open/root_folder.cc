#include "daemon/fetch/open/root_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "daemon/fetch/host_shortage.h"
#include "daemon/observe/log.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

std::string named(const std::string& root) {
  return "the root " + printable(root);
}

}  // namespace

RootFolder::RootFolder(const std::string& configured, Clock::duration look_every, FirstLook first)
    : name_(configured), look_every_(look_every) {
  if (first == FirstLook::kWhenWanted) return;
  Result<Opened> found = open_anew(name_);
  if (!found)
    log_warning(found.error().message +
                ": what lies beneath it is not served until it is there; it is looked for whenever a client asks");
  MutexLock lock(mutex_);
  there_ = found.has_value();
  if (found) take(*std::move(found));
  looked_ = wanted_ = Clock::now();
}

void RootFolder::take(Opened found) {
  found_ = {found.status.st_dev, found.status.st_ino};
  opened_ = std::make_shared<const Opened>(std::move(found));
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
    const Clock::duration interval = root_.there_ ? root_.look_every_ : root_.look_every_ / 10;
    const bool let_go = root_.there_ && !root_.opened_;
    if (root_.looking_ || (!let_go && Clock::now() - root_.looked_ < interval)) return false;
    root_.looking_ = true;
    return true;
  }

  RootFolder& root_;
  const bool taken_;
};

std::shared_ptr<const RootFolder::Opened> RootFolder::opened() {
  if (const Turn turn(*this); turn) settle(open_anew(name_));
  {
    MutexLock lock(mutex_);
    wanted_ = Clock::now();
    if (opened_ || !there_) return opened_;
  }
  settle(open_anew(name_));  // let go of, and it is somebody else's turn to look
  MutexLock lock(mutex_);
  return opened_;
}

bool RootFolder::missing() const {
  MutexLock lock(mutex_);
  return !there_;
}

bool RootFolder::let_go_unless_wanted(Clock::time_point since) {
  std::shared_ptr<const Opened> unwanted;  // closed without the lock
  MutexLock lock(mutex_);
  if (wanted_ < since) unwanted = std::move(opened_);
  return opened_ != nullptr;
}

void RootFolder::heard(bool there) {
  bool before = false;
  {
    MutexLock lock(mutex_);
    before = std::exchange(there_, there);
    if (!there) opened_ = nullptr;
  }
  if (before == there) return;
  if (there) log_info(named(configured()) + " is there now");
  if (!there) log_warning(named(configured()) + " is not there any more, says the opener");
}

// Only that there is no such folder ends what was found before: a daemon without descriptors, or a file server that
// does not answer, say nothing about it.
void RootFolder::settle(Result<Opened> found) {
  const bool gone = !found && found.error().code == Code::kNotFound;
  bool was_there = false, other = false;
  std::shared_ptr<const Opened> held;  // closed without the lock
  {
    MutexLock lock(mutex_);
    held = opened_;
    was_there = there_;
    const auto before = found_;
    if (gone) opened_ = nullptr;
    if (gone || found) there_ = !gone;
    if (found) take(*std::move(found));
    other = was_there && before && found && before != found_;
  }
  if (!was_there && found) log_info(named(configured()) + " is there now");
  if (was_there && gone) log_warning(named(configured()) + " is not there any more: " + found.error().message);
  if (other)
    log_info(named(configured()) + " is another folder than before: it was mounted over, unmounted or made again");
}

}  // namespace millrace
