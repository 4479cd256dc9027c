// What tells a file's contents, or those of a part of it, from others without reading them. Value.
#pragma once

#include <cstdint>

namespace millrace {

// As fstat() says. Times in nanoseconds since 1970.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;     // of the whole file
  std::int64_t modified = 0;  // mtime
  std::int64_t changed = 0;   // ctime: that of any write() and of most stores through mappings

  // The part that is meant. Both 0: the whole file.
  std::uint64_t part_begin = 0;
  std::uint64_t part_size = 0;

  std::uint64_t bytes() const { return part_size > 0 ? part_size : size; }
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

}  // namespace millrace
