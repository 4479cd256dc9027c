#include "client/cli/convert/tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "client/cli/convert/names.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

using Identity = std::pair<dev_t, ino_t>;

class Walk {
 public:
  explicit Walk(std::string root) : root_(std::move(root)) {}

  Result<void> enter(const std::string& path, bool by_link) {
    const std::string whole = joined(root_, path);
    struct stat status {};
    if (::stat(whole.c_str(), &status) != 0) return cannot_read(path, errno_error(whole, errno));
    const Identity identity{status.st_dev, status.st_ino};
    if (std::ranges::count(above_, identity) != 0) return ++tree_.odd, Result<void>();
    std::error_code failed;
    std::set<std::string, std::less<>> names;
    for (fs::directory_iterator at(whole, failed), end; !failed && at != end; at.increment(failed))
      names.insert(at->path().filename().string());
    if (failed) return cannot_read(path, errno_error(whole, failed.value()));
    above_.push_back(identity);
    const Result<void> done = take(path, names, by_link);
    above_.pop_back();
    return done;
  }
  // Links first: what they lead to may be deleted once it has had its own turn.
  Tree take_tree() {
    std::stable_partition(tree_.files.begin(), tree_.files.end(), [](const TreeFile& file) { return file.by_link; });
    return std::move(tree_);
  }

 private:
  Result<void> cannot_read(const std::string& path, Error error) {
    if (path.empty()) return error;
    tree_.unreadable.push_back({path, std::move(error)});
    return {};
  }

  Result<void> take(const std::string& path, const std::set<std::string, std::less<>>& names, bool by_link) {
    const std::size_t folder = tree_.folders.size();
    tree_.folders.push_back({path, {}, by_link});
    std::vector<std::pair<std::string, bool>> inner;
    for (const std::string& name : names) {
      if (name.starts_with(kOwnPrefix)) continue;
      const std::string whole = joined(root_, joined(path, name));
      struct stat entry {
      }, target{};
      if (::lstat(whole.c_str(), &entry) != 0 || ::stat(whole.c_str(), &target) != 0) {
        ++tree_.odd;
        continue;
      }
      const bool link = by_link || S_ISLNK(entry.st_mode);
      if (S_ISDIR(target.st_mode)) {
        inner.emplace_back(joined(path, name), link);
      } else if (S_ISREG(target.st_mode)) {
        tree_.folders[folder].files.insert(name);
        tree_.files.push_back({folder, name, link});
      } else {
        ++tree_.odd;
      }
    }
    for (const auto& [below, link] : inner) MILLRACE_TRY_VOID(enter(below, link));
    return {};
  }

  const std::string root_;
  std::vector<Identity> above_;
  Tree tree_;
};

// A link that leads to nothing.
bool remove_dangling(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return false;
  return ::stat(path.c_str(), &status) != 0 && errno == ENOENT && ::unlink(path.c_str()) == 0;
}

// Whether the folder that a path beneath the root lies in is no link, nor is any above it.
bool lies_in_place(const Tree& tree, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "" : path.substr(0, slash);
  const auto found = std::ranges::find(tree.folders, folder, &TreeFolder::path);
  return found != tree.folders.end() && !found->by_link;
}

}  // namespace

std::string joined(const std::string& folder, const std::string& name) {
  return folder.empty() || name.empty() ? folder + name : folder + '/' + name;
}

Result<Tree> read_tree(const std::string& root) {
  Walk walk(root);
  MILLRACE_TRY_VOID(walk.enter("", false));
  return walk.take_tree();
}

std::size_t remove_what_is_left(const std::string& root, const Tree& tree) {
  std::vector<std::string> links;
  for (const TreeFile& file : tree.files) {
    const TreeFolder& folder = tree.folders[file.folder];
    if (file.by_link && !folder.by_link) links.push_back(joined(folder.path, file.name));
  }
  for (const TreeFolder& folder : tree.folders) {
    if (folder.by_link && lies_in_place(tree, folder.path)) links.push_back(folder.path);
  }
  std::size_t removed = 0, before = 0;
  do {  // a folder that has gone may have been what a link led to, and a link all that a folder had
    before = removed;
    for (const std::string& link : links) removed += remove_dangling(joined(root, link)) ? 1 : 0;
    for (std::size_t i = tree.folders.size(); i-- > 1;) {
      const TreeFolder& folder = tree.folders[i];
      if (!folder.by_link && ::rmdir(joined(root, folder.path).c_str()) == 0) ++removed;
    }
  } while (removed > before);
  return removed;
}

}  // namespace millrace::cli
