// What the readers of this folder have in common. Values; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace millrace::kernels::raster {

using FileBytes = std::span<const std::uint8_t>;

inline constexpr std::uint32_t kLargestSide = 0x7FFF'FFFF;  // what a size in pixels may be at the most

// A file's bytes one after the other: nullopt behind the last one.
class Cursor {
 public:
  explicit Cursor(FileBytes file_untrusted, std::size_t at = 0) : file_(file_untrusted), at_(at) {}

  std::optional<std::uint8_t> next() {
    if (at_ >= file_.size()) return std::nullopt;
    return file_[at_++];
  }
  std::size_t at() const { return at_; }

 private:
  FileBytes file_;
  std::size_t at_;
};

}  // namespace millrace::kernels::raster
