#include "daemon/opener/as_caller.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "daemon/fetch/host_shortage.h"
#include "daemon/fetch/open/open_at.h"
#include "daemon/fetch/open/refusals.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

// What one name may take of a message's second: with the names before it, it is not late (connection.cc).
constexpr std::chrono::milliseconds kLongestWalk{500};

constexpr int kToRead = O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
constexpr int kToList = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;

int flags_of(OpenerWhat what) {
  if (what == OpenerWhat::kType) return O_PATH | O_CLOEXEC;
  return what == OpenerWhat::kFolder ? kToList : kToRead;
}

// What openat2() does not do, or cannot do here, or does not say clearly.
bool needs_walk(int error_number, OpenerWhat what) {
  return error_number == EXDEV || error_number == ELOOP || error_number == ENOSYS || error_number == EPERM ||
         (error_number == ENOTDIR && what == OpenerWhat::kFolder);
}

// Its search permission, asked of the kernel: "." is looked up in it.
bool may_search_as_now(int folder) {
  struct stat status {};
  return ::fstatat(folder, ".", &status, 0) == 0;
}

Error with_kerberos() {
  return Error{Code::kUnsupported,
               "it lies on NFS with Kerberos (sec=krb5), where rights hang on your own tickets, which the daemon's "
               "opener has not: send the images' bytes, or run a private daemon"};
}

Error link_in_name(const std::string& root) {
  return Error{Code::kInternal, "there is a symbolic link in the name of the root " + printable(root) +
                                    ", which was not there or could not be read when the opener started: write the "
                                    "folder's own name in files.roots, and restart the opener"};
}

}  // namespace

class AsCaller::Rules final : public WalkRules {
 public:
  explicit Rules(AsCaller& opener) : opener_(opener) {}

  Result<Start> start(std::string_view path) const override {
    MILLRACE_TRY(const Place place, opener_.place_of(path));
    return Start{.keep = nullptr, .root = place.root->fd.get(), .rest = place.rest};
  }
  bool may_search(int folder, const struct stat&) const override { return may_search_as_now(folder); }
  Error refused() const override { return not_readable(); }

 private:
  AsCaller& opener_;
};

AsCaller::AsCaller(const std::vector<RootName>& roots, KerberosMounts& kerberos)
    : names_(roots), kerberos_(kerberos), roots_(roots.size()) {}

AsCaller::Opened AsCaller::open(std::string_view name_untrusted, OpenerWhat what) {
  root_missing_ = false;
  Opened opened;
  Result<UniqueFd> fd = is_clean(name_untrusted) ? open_it(name_untrusted, what) : Result<UniqueFd>(not_readable());
  if (!fd) {
    opened.answer.root_missing = root_missing_ && fd.error().code == Code::kNotFound;
    opened.answer.error = std::move(fd).error();
    return opened;
  }
  if (what != OpenerWhat::kType) {
    opened.answer.descriptor = true;
    opened.fd = *std::move(fd);
    return opened;
  }
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) opened.answer.error = io_error("looking at the file", errno);
  if (!opened.answer.error) opened.answer.type = status.st_mode & S_IFMT;
  return opened;
}

Result<UniqueFd> AsCaller::open_it(std::string_view path, OpenerWhat what) {
  MILLRACE_TRY(const Place place, place_of(path));
  const std::string relative = place.rest.empty() ? "." : std::string(place.rest);
  UniqueFd fd = open_beneath(place.root->fd.get(), relative, flags_of(what));
  if (!fd) return needs_walk(errno, what) ? open_walking(path, what) : open_error(errno, not_readable());
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return io_error("opening the file", errno);
  MILLRACE_TRY_VOID(check(fd.get(), status, what, place.root->device));
  return fd;
}

Result<UniqueFd> AsCaller::open_walking(std::string_view path, OpenerWhat what) {
  const Rules rules(*this);
  Result<Found> walked = PathWalk(rules, kLongestWalk).walk(path);
  root_missing_ = false;  // of a link's, if any
  if (!walked) return std::move(walked).error();
  Found found = *std::move(walked);
  if (what == OpenerWhat::kFolder && !S_ISDIR(found.status.st_mode)) return a_file_not_a_folder();
  UniqueFd fd = what == OpenerWhat::kType ? std::move(found.fd) : reopen(found.fd.get(), flags_of(what));
  if (!fd) return open_error(errno, not_readable());
  MILLRACE_TRY_VOID(check(fd.get(), found.status, what, 0));
  return fd;
}

// `root`: the device of the root that it was found in, which was looked at already; 0: unknown.
Result<void> AsCaller::check(int fd, const struct stat& status, OpenerWhat what, dev_t root) {
  if (what == OpenerWhat::kFile && !S_ISREG(status.st_mode))
    return S_ISDIR(status.st_mode) ? a_folder_not_a_file() : not_a_regular_file();
  if (what == OpenerWhat::kFolder && !may_search_as_now(fd)) return not_readable();
  return status.st_dev == root ? Result<void>() : check_kerberos(status.st_dev);
}

Result<void> AsCaller::check_kerberos(dev_t device) {
  MILLRACE_TRY(const bool has_it, kerberos_.has(device));
  return has_it ? Result<void>(with_kerberos()) : Result<void>();
}

// In the outermost root that is there, as the daemon has it.
Result<AsCaller::Place> AsCaller::place_of(std::string_view path) {
  const RootName* missing = nullptr;
  Place best;
  std::size_t shortest = path.npos;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const std::optional<std::size_t> length = names_[i].length_in(path);
    if (!length || *length >= shortest) continue;
    Root& root = root_at(i);
    if (root.missing) {
      missing = &names_[i];
      continue;
    }
    best = Place{&root, RootName::rest_of(path, *length)};
    shortest = *length;
  }
  if (best.root != nullptr) return best.root->error ? Result<Place>(*best.root->error) : Result<Place>(best);
  if (missing == nullptr) return not_readable();
  root_missing_ = true;
  return root_not_there(missing->configured());
}

AsCaller::Root& AsCaller::root_at(std::size_t index) {
  Root& root = roots_[index];
  if (std::exchange(root.tried, true)) return root;
  const std::string& name = names_[index].canonical();
  root.fd = open_without_links(name.empty() ? "/" : name);
  struct statx status {};
  if (!root.fd) {
    root.missing = errno == ENOENT || errno == ENOTDIR;
    root.error = errno == ELOOP ? link_in_name(names_[index].configured()) : open_error(errno, not_readable());
  } else if (::statx(root.fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0) {
    root.error = io_error("looking at the root", errno);
  } else {
    root.device = makedev(status.stx_dev_major, status.stx_dev_minor);
    if (const Result<void> well = check_kerberos(root.device); !well) root.error = well.error();
  }
  return root;
}

}  // namespace millrace
