// A configured root by its names: as it is spelled in the settings, and without the symbolic links that stood in that
// name when this was made. Links are expanded once, so that nobody can lead the root elsewhere afterwards. Immutable.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

class RootName {
 public:
  // REQUIRES: `configured` is absolute.
  explicit RootName(const std::string& configured);

  const std::string& configured() const { return configured_; }
  const std::string& canonical() const { return canonical_; }  // without slashes at the end: "" for "/"

  // The length of that name of it which `path` begins with, where the path lies beneath it or is it; 0 for "/".
  std::optional<std::size_t> length_in(std::string_view path) const;
  // What of `path` comes after so long a name: relative to the root, "" the root itself.
  static std::string_view rest_of(std::string_view path, std::size_t length) {
    return path.size() > length ? path.substr(length + 1) : std::string_view();
  }

 private:
  const std::string configured_;
  const std::string spelled_, canonical_;
};

// Whether a path is one that clients may write: absolute, without empty components, "." and "..", without zero bytes.
bool is_clean(std::string_view path);

}  // namespace millrace
