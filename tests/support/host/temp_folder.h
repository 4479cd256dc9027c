// A fresh folder under $TMPDIR (else /tmp) or another one, mode 0700, gone with its owner whatever is in it.
// Thread-bound(its owner).
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace millrace {

class TempFolder {
 public:
  TempFolder() : TempFolder(usual_base()) {}
  explicit TempFolder(const std::string& base) {
    std::string name = base + "/millrace-test-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + name);
    path_ = std::filesystem::canonical(name).string();
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }  // absolute, without symbolic links
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  static std::string usual_base() {
    const char* base = std::getenv("TMPDIR");
    return base != nullptr && *base == '/' ? base : "/tmp";
  }

  std::string path_;
};

}  // namespace millrace
