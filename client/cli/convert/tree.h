// A folder with all that is in it, before anything is done to it. Links are followed: one to a file is that file, one to
// a folder is that folder, unless it leads back to a folder that it lies in. Values; thread-safe: a plain function.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "proto/base/result.h"

namespace millrace::cli {

struct TreeFolder {
  std::string path;  // beneath the root; empty: the root itself
  std::set<std::string, std::less<>> files;
  bool by_link = false;  // it, or a folder above it, is a link
};

struct TreeFile {
  std::size_t folder = 0;
  std::string name;
  bool by_link = false;  // it, or a folder above it, is a link
};

struct UnreadableFolder {
  std::string path;  // beneath the root
  Error error;       // which names it in full
};

struct Tree {
  std::vector<TreeFolder> folders;           // each behind the one that it lies in
  std::vector<TreeFile> files;               // those by a link first, then folder by folder, by name
  std::vector<UnreadableFolder> unreadable;  // neither these nor what is in them is in `folders` or `files`
  std::size_t odd = 0;  // sockets, pipes, devices, links to nothing or back: none of them is a file
};

// "a/b" and "c" to "a/b/c".
std::string joined(const std::string& folder, const std::string& name);

// Errors: the root cannot be read.
Result<Tree> read_tree(const std::string& root);

// After files of a tree were deleted: removes folders beneath the root that are empty, and links that lead nowhere now.
// Nothing that only a link leads to is touched. How many it removed.
std::size_t remove_what_is_left(const std::string& root, const Tree& tree);

}  // namespace millrace::cli
