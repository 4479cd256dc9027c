#include "daemon/fetch/open/root_name.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace millrace {
namespace {

std::string without_slashes_at_the_end(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  return path;
}

// As realpath(3), but also of what is not there, or not yet.
std::string without_links(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinksFollowed = 40;  // as the kernel
  std::vector<fs::path> to_do;            // the next one last
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
      const bool follow = !no_link && ++links <= kMostLinksFollowed;
      if (follow) put_off(target);
      if (!follow) at /= component;
    }
  }
  return at.string();
}

}  // namespace

RootName::RootName(const std::string& configured)
    : configured_(configured),
      spelled_(without_slashes_at_the_end(configured)),
      canonical_(without_slashes_at_the_end(without_links(configured))) {}

std::optional<std::size_t> RootName::length_in(std::string_view path) const {
  std::optional<std::size_t> length;
  for (const std::string* name : {&spelled_, &canonical_}) {
    const bool beneath = path.starts_with(*name) && (path.size() == name->size() || path[name->size()] == '/');
    if (beneath && (!length || name->size() < *length)) length = name->size();
  }
  return length;
}

bool is_clean(std::string_view path) {
  if (path.size() < 2 || path.front() != '/' || path.find('\0') != path.npos) return false;
  std::string_view rest = path;
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the slash
    const std::string_view component = rest.substr(0, rest.find('/'));
    if (component.empty() || component == "." || component == "..") return false;
    rest.remove_prefix(component.size());
  }
  return true;
}

}  // namespace millrace
