// A tree of files with a root in it, and what opening a path beneath comes to.
#pragma once

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "daemon/fetch/open/roots.h"
#include "daemon/fetch/read/read_file.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"

namespace millrace {

inline const std::string kDenied =
    "not readable: the path must lie beneath one of the daemon's roots and be readable by you";

// outside/, and root/ with a folder and files in it; all readable by everybody.
struct Tree {
  TempFolder temp;
  std::string root = temp / "root";
  std::string outside = temp / "outside";

  Tree() {
    std::filesystem::create_directories(root + "/a/b");
    std::filesystem::create_directories(outside);
    write_file(root + "/a/b/file", std::string("inside"));
    write_file(outside + "/file", std::string("outside"));
    chmod(temp.path().c_str(), 0755);
  }
  std::string operator/(const std::string& name) const { return root + "/" + name; }
};

inline std::unique_ptr<Roots> open_roots(const std::vector<std::string>& roots,
                                         std::chrono::milliseconds look_every = {}, const UnmappedIds& unmapped = {}) {
  Result<std::unique_ptr<Roots>> opened =
      Roots::open({.folders = roots, .unmapped = unmapped, .look_every = look_every});
  REQUIRE(opened.has_value());
  return *std::move(opened);
}

// The file's text, or the error's.
inline std::string text_or_error(const Roots& roots, const std::string& path, const Caller& caller) {
  const Result<OpenFile> file = roots.open_file(path, caller);
  if (!file) return file.error().message;
  const Result<EncodedBytes> bytes = read_file(*file, 1_MiB);
  REQUIRE(bytes.has_value());
  return std::string(reinterpret_cast<const char*>(bytes->view().data()), bytes->size());
}

inline Code code_of(const Roots& roots, const std::string& path, const Caller& caller) {
  const Result<OpenFile> file = roots.open_file(path, caller);
  REQUIRE_FALSE(file.has_value());
  return file.error().code;
}

}  // namespace millrace
