// What a first access of a file takes, by which savings are reckoned: time of a lane for each byte, apart for each format
// and for files whose rows come in passes. Measured as first accesses happen; until then, and after a restart, by what
// photographs take elsewhere. Thread-safe: relaxed atomics.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "daemon/model/bytes/encoded_image.h"

namespace millrace {

class FirstAccesses {
 public:
  FirstAccesses();

  void add(const SourceInfo& info, std::uint64_t file_bytes, std::chrono::microseconds took);
  // What one of such a file would take, going by the last 256 MiB of such files.
  std::chrono::microseconds expected(const SourceInfo& info, std::uint64_t file_bytes) const;

 private:
  struct Sum {
    std::atomic<std::uint64_t> bytes{0}, microseconds{0};
  };
  static constexpr std::size_t kKinds = 2 * kImageFormats;  // rows at once or in passes

  static std::size_t kind_of(const SourceInfo& info);

  // Writers: lanes. Readers: the same. Each pair stands for itself, and may be a sample apart.
  std::array<Sum, kKinds> sums_;
};

}  // namespace millrace
