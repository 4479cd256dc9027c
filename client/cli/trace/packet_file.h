// A recording's file: packets, one behind the other, whole ones alone, so that it reads whatever happens. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "proto/base/mutex.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace::cli {

class PacketFile {
 public:
  // A file that is there is written anew. Errors: the system's, with the path.
  static Result<std::unique_ptr<PacketFile>> create(const std::string& path);

  // All of them, or none and an error: the disk is full, or the file may get no longer. From then on nothing is written.
  Result<void> append(std::string_view packets) MILLRACE_EXCLUDES(mutex_);
  std::uint64_t bytes() const MILLRACE_EXCLUDES(mutex_);
  const std::string& path() const { return path_; }

 private:
  PacketFile(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}

  const std::string path_;
  const UniqueFd file_;
  mutable Mutex mutex_;
  std::uint64_t bytes_ MILLRACE_GUARDED_BY(mutex_) = 0;
  bool has_failed_ MILLRACE_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace::cli
