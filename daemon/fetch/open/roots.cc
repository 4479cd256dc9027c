#include "daemon/fetch/open/roots.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "daemon/fetch/host_shortage.h"
#include "daemon/fetch/open/identity.h"
#include "daemon/fetch/open/open_at.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr int kToRead = O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
constexpr int kToList = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;

std::string_view without_slashes_at_the_end(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

std::string relative_name(std::string_view rest) {
  return rest.empty() ? "." : std::string(rest);
}

Result<void> check_regular(const struct stat& status) {
  if (S_ISREG(status.st_mode)) return {};
  return S_ISDIR(status.st_mode) ? a_folder_not_a_file() : not_a_regular_file();
}

Bytes size_of(const struct stat& status) {
  return Bytes{static_cast<std::uint64_t>(status.st_size)};
}

Result<OpenFile> as_file(OpenerLink::Opened opened) {
  if (opened.answer.error) return *std::move(opened.answer.error);
  struct stat status {};
  if (!opened.fd || fstat(opened.fd.get(), &status) != 0) return io_error("opening the file", errno);
  MILLRACE_TRY_VOID(check_regular(status));
  return OpenFile{std::move(opened.fd), size_of(status), identity_of(status)};
}

}  // namespace

// The daemon's own checks of what the caller may search; a trusted one is not asked about.
class Roots::CallerWalk final : public WalkRules {
 public:
  CallerWalk(const Roots& roots, const Caller& caller)
      : roots_(roots), caller_(caller), trusted_(roots.rights_.is_trusted(caller)) {}

  // What lies above the roots is searched by name as well.
  Result<Start> start(std::string_view path) const override {
    MILLRACE_TRY(Place place, roots_.place_of(path));
    for (const UniqueFd& folder : place.root->above) {
      struct stat status {};
      if (!trusted_ && (fstat(folder.get(), &status) != 0 || !may_search(folder.get(), status))) return not_readable();
    }
    const int root = place.root->fd.get();
    return Start{.keep = std::move(place.root), .root = root, .rest = place.rest};
  }
  bool may_search(int folder, const struct stat& status) const override {
    return trusted_ || roots_.rights_.may(caller_, Right::kSearch, folder, status);
  }
  Error refused() const override { return refused_to_daemon(caller_); }

 private:
  const Roots& roots_;
  const Caller& caller_;
  const bool trusted_;
};

Result<std::unique_ptr<Roots>> Roots::open(const Options& options) {
  std::unique_ptr<Roots> roots(new Roots(options.unmapped, options.look_every));
  roots->opens_for_root_ = options.opens_for_root;
  if (!options.opener.empty()) {
    const bool once_there = options.opener == kOpenerOnceThere;
    roots->opener_ = std::make_unique<OpenerRoots>(
        OpenerLink::Options{.socket = once_there ? std::string(kUsualOpener) : options.opener,
                            .once_there = once_there,
                            .connections = options.threads,
                            .introductions = options.all_threads});
  }
  MILLRACE_TRY(RootFolders folders, roots->open_folders(options.folders));
  roots->use(std::move(folders));
  return roots;
}

Result<RootFolders> Roots::open_folders(const std::vector<std::string>& folders) const {
  const RootFolders before = in_force_.now();
  const bool opened_by_others = opener_ && opener_->serves();
  const auto first = opened_by_others ? RootFolder::FirstLook::kWhenWanted : RootFolder::FirstLook::kNow;
  auto opened = std::make_shared<RootList>();
  for (const std::string& folder : folders) {
    if (!folder.starts_with('/'))
      return Error{Code::kInvalid, "the root " + printable(folder) + " must be an absolute path"};
    const auto same = std::ranges::find_if(*before, [&](const auto& root) { return root->configured() == folder; });
    opened->push_back(same != before->end() ? *same : std::make_shared<RootFolder>(folder, look_every_, first));
  }
  return RootFolders(std::move(opened));
}

std::vector<std::string> Roots::missing() const {
  std::vector<std::string> missing;
  const RootFolders roots = in_force_.now();
  for (const auto& root : *roots) {
    if (root->missing()) missing.push_back(root->configured());
  }
  return missing;
}

std::optional<std::string> Roots::root_of(std::string_view path_untrusted) const {
  const RootFolders roots = in_force_.now();
  for (const auto& root : *roots) {
    if (root->name_in(path_untrusted)) return root->configured();
  }
  return std::nullopt;
}

bool Roots::beneath_missing(std::string_view path_untrusted) const {
  bool beneath = false;
  const RootFolders roots = in_force_.now();
  for (const auto& root : *roots) {
    if (!root->name_in(path_untrusted)) continue;
    if (!root->missing()) return false;
    beneath = true;
  }
  return beneath;
}

Error Roots::with_roots(Error error) const {
  constexpr std::size_t kMostNamed = 8;
  if (error.message != not_readable().message) return error;
  std::string named;
  const RootFolders roots = in_force_.now();
  for (std::size_t i = 0; i < roots->size() && i < kMostNamed; ++i)
    named += (i == 0 ? "" : ", ") + printable((*roots)[i]->configured());
  if (roots->size() > kMostNamed) named += ", and " + std::to_string(roots->size() - kMostNamed) + " others";
  error.message += roots->empty() ? "; it has none" : "; they are " + named;
  error.message += " (files.roots in the daemon's settings, or what a private daemon was given)";
  return error;
}

Result<Roots::Place> Roots::place_of(std::string_view path) const {
  Place best;
  std::size_t shortest = path.npos;
  const RootFolder* missing = nullptr;
  const RootFolders roots = in_force_.now();
  for (const auto& root : *roots) {
    const std::optional<std::size_t> name = root->name_in(path);
    if (!name || *name >= shortest) continue;
    std::shared_ptr<const RootFolder::Opened> opened = root->opened();
    if (!opened) {
      missing = root.get();
      continue;
    }
    best = Place{std::move(opened), path.substr(std::min(*name + 1, path.size()))};
    shortest = *name;
  }
  if (best.root) return best;
  return missing == nullptr ? not_readable() : root_not_there(missing->configured());
}

Result<OpenFile> Roots::open_file(std::string_view path_untrusted, const Caller& caller) const {
  MILLRACE_TRY_VOID(rights_.check_known(caller));
  if (by_opener(caller))
    return as_file(std::move(opener_->ask({&path_untrusted, 1}, OpenerWhat::kFile, caller, *in_force_.now()).front()));
  if (!is_clean(path_untrusted)) return not_readable();
  return rights_.is_trusted(caller) ? open_trusted(path_untrusted, caller) : open_checked(path_untrusted, caller);
}

Result<OpenFile> Roots::open_trusted(std::string_view path, const Caller& caller) const {
  MILLRACE_TRY(const Place place, place_of(path));
  UniqueFd fd = open_beneath(place.root->fd.get(), relative_name(place.rest), kToRead);
  if (!fd) {
    const bool needs_walk = errno == EXDEV || errno == ELOOP || errno == ENOSYS || errno == EPERM;
    return needs_walk ? open_walking(path, caller) : open_error(errno, refused_to_daemon(caller));
  }
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return io_error("opening the file", errno);
  MILLRACE_TRY_VOID(check_regular(status));
  return OpenFile{std::move(fd), size_of(status), identity_of(status)};
}

// A caller's own rights: the folder by its verdict or a walk, then the file in it by what it says itself once it is
// open.
Result<OpenFile> Roots::open_checked(std::string_view path, const Caller& caller) const {
  const std::size_t slash = path.rfind('/');
  MILLRACE_TRY(const Place place, place_of(path));
  if (place.rest.empty()) return open_walking(path, caller);
  MILLRACE_TRY(const UniqueFd folder, reach_folder(path.substr(0, slash), caller));
  UniqueFd fd(openat(folder.get(), std::string(path.substr(slash + 1)).c_str(), kToRead | O_NOFOLLOW));
  if (!fd)
    return errno == ENOENT ? Result<OpenFile>(no_such_file())
                           : open_walking(path, caller);  // a link, or refused: say why
  struct stat status {};
  if (fstat(fd.get(), &status) != 0 || !rights_.may(caller, Right::kRead, fd.get(), status)) return not_readable();
  MILLRACE_TRY_VOID(check_regular(status));
  return OpenFile{std::move(fd), size_of(status), identity_of(status)};
}

Result<OpenFile> Roots::open_walking(std::string_view path, const Caller& caller) const {
  MILLRACE_TRY(const Found found, find(path, caller));
  if (!rights_.may_read(caller, found.fd.get(), found.status)) return not_readable();
  MILLRACE_TRY_VOID(check_regular(found.status));
  UniqueFd fd = reopen(found.fd.get(), kToRead);
  if (!fd) return open_error(errno, refused_to_daemon(caller));
  return OpenFile{std::move(fd), size_of(found.status), identity_of(found.status)};
}

// An O_PATH descriptor of a folder that the caller may search.
Result<UniqueFd> Roots::reach_folder(std::string_view path, const Caller& caller) const {
  const auto now = FolderVerdicts::Clock::now();
  MILLRACE_TRY(const Place place, place_of(path));
  struct stat status {};
  UniqueFd fd = open_beneath(place.root->fd.get(), relative_name(place.rest), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd && fstat(fd.get(), &status) == 0 && verdicts_.allowed(caller, path, status, now)) return fd;
  MILLRACE_TRY(Found found, find(path, caller));
  if (!S_ISDIR(found.status.st_mode)) return no_such_file();
  if (!rights_.may(caller, Right::kSearch, found.fd.get(), found.status)) return not_readable();
  verdicts_.allow(caller, path, found.status, now);
  return std::move(found.fd);
}

Result<Found> Roots::find(std::string_view path_untrusted, const Caller& caller) const {
  MILLRACE_TRY_VOID(rights_.check_known(caller));
  if (!is_clean(path_untrusted)) return not_readable();
  const CallerWalk rules(*this, caller);
  return PathWalk(rules).walk(path_untrusted);
}

Result<mode_t> Roots::type_of(std::string_view path_untrusted, const Caller& caller) const {
  MILLRACE_TRY_VOID(rights_.check_known(caller));
  if (by_opener(caller)) {
    const OpenAnswer answer =
        opener_->ask({&path_untrusted, 1}, OpenerWhat::kType, caller, *in_force_.now()).front().answer;
    return answer.error ? Result<mode_t>(*answer.error) : Result<mode_t>(mode_t{answer.type});
  }
  MILLRACE_TRY(const Found found, find(path_untrusted, caller));
  return mode_t{found.status.st_mode & S_IFMT};
}

Result<UniqueFd> Roots::open_folder(std::string_view path_untrusted, const Caller& caller) const {
  const std::string_view path = without_slashes_at_the_end(path_untrusted);
  MILLRACE_TRY_VOID(rights_.check_known(caller));
  if (by_opener(caller)) {
    OpenerLink::Opened opened =
        std::move(opener_->ask({&path, 1}, OpenerWhat::kFolder, caller, *in_force_.now()).front());
    return opened.answer.error ? Result<UniqueFd>(*std::move(opened.answer.error)) : std::move(opened.fd);
  }
  MILLRACE_TRY(const Found found, find(path, caller));
  if (!rights_.may_list(caller, found.fd.get(), found.status)) return not_readable();
  if (!S_ISDIR(found.status.st_mode)) return a_file_not_a_folder();
  UniqueFd fd = reopen(found.fd.get(), kToList);
  if (!fd) return open_error(errno, refused_to_daemon(caller));
  return fd;
}

bool Roots::let_go_of_unwanted() const {
  constexpr std::chrono::seconds kHeld{3};
  const auto now = RootFolder::Clock::now();
  const std::int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  if (looked_.exchange(second, std::memory_order_relaxed) == second) return true;
  bool any = false;
  const RootFolders roots = in_force_.now();
  for (const auto& root : *roots) any = root->let_go_unless_wanted(now - kHeld) || any;
  return any;
}

// ---- by the opener ----

Result<void> Roots::tell_opener() const {
  return opener_ && opener_->serves() ? opener_->read_settings() : Result<void>();
}

bool Roots::by_opener(const Caller& caller) const {
  if (!opener_) return false;
  const bool trusted = rights_.is_trusted(caller) && !(opens_for_root_ && caller.uid == 0);
  return !trusted && opener_->serves();
}

std::vector<Result<OpenFile>> Roots::open_files(std::span<const std::string> paths_untrusted,
                                                const Caller& caller) const {
  std::vector<Result<OpenFile>> files;
  if (const Result<void> known = rights_.check_known(caller); !known) {
    for (std::size_t i = 0; i < paths_untrusted.size(); ++i) files.emplace_back(known.error());
    return files;
  }
  if (!by_opener(caller)) {
    for (const std::string& path : paths_untrusted) files.push_back(open_file(path, caller));
    return files;
  }
  const std::vector<std::string_view> paths(paths_untrusted.begin(), paths_untrusted.end());
  for (OpenerLink::Opened& opened : opener_->ask(paths, OpenerWhat::kFile, caller, *in_force_.now()))
    files.push_back(as_file(std::move(opened)));
  return files;
}

}  // namespace millrace
