// Files read whole, and files that appear under their name complete or not at all. Nothing is ever written over.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace::cli {

// An open regular file, and what it was when it was opened. Thread-bound(its owner).
class SourceFile {
 public:
  // kInvalid: no regular file.
  static Result<SourceFile> open(const std::string& path);

  std::uint64_t size() const { return static_cast<std::uint64_t>(status_.st_size); }
  const struct stat& status() const { return status_; }
  // All of it. kUnavailable: it changed meanwhile.
  Result<void> read(std::vector<std::uint8_t>& bytes);
  // The next piece, empty at its end.
  Result<void> read_piece(std::vector<std::uint8_t>& bytes);
  // kUnavailable: it is not what it was when it was opened.
  Result<void> check_unchanged() const;

 private:
  SourceFile(UniqueFd file, std::string path, const struct stat& status)
      : file_(std::move(file)), path_(std::move(path)), status_(status) {}

  UniqueFd file_;
  std::string path_;
  struct stat status_ {};
};

// Whether a file's name still stands for the file of this status, unchanged.
bool is_still(const std::string& path, const struct stat& status);

enum class Sync : std::uint8_t { kNo, kYes };

// A file that is being written, under another name in its folder. Gone with its owner until it is published.
// Thread-bound(its owner).
class NewFile {
 public:
  static Result<NewFile> create(const std::string& folder, const std::string& name);
  ~NewFile();
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;

  Result<void> write(const std::vector<std::uint8_t>& bytes);
  // The name, mode and time of another file. false: a file of this name is there; it is left as it is.
  Result<bool> publish(const struct stat& like, Sync sync);

 private:
  NewFile(UniqueFd file, std::string folder, std::string temporary, std::string path)
      : file_(std::move(file)), folder_(std::move(folder)), temporary_(std::move(temporary)), path_(std::move(path)) {}

  UniqueFd file_;
  std::string folder_, temporary_, path_;
};

}  // namespace millrace::cli
