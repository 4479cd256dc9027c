// An encoded image in memory and what its header says. Moved from fetch to the backend; owns its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "daemon/model/recipe.h"
#include "proto/base/bytes.h"

namespace millrace {

enum class ImageFormat : std::uint8_t { kJpeg, kPng, kWebp };

// From the header alone, not from decoding.
struct SourceInfo {
  ImageFormat format = ImageFormat::kJpeg;
  Size stored;                   // pixels in the file
  std::uint8_t orientation = 1;  // EXIF, 1 ... 8; 1 when absent, unreadable or ignored by the recipe
};

// Size after the orientation was applied: sides swapped for 5 ... 8.
constexpr Size oriented_size(const SourceInfo& info) {
  return info.orientation >= 5 ? Size{info.stored.height, info.stored.width} : info.stored;
}

// Bytes that end with at least kReadSlack readable zero bytes, so that decoders may load words. Thread-bound(its
// owner).
class EncodedBytes {
 public:
  static constexpr std::size_t kReadSlack = 64;

  EncodedBytes() = default;
  explicit EncodedBytes(std::size_t size);  // uninitialised but for the slack

  ByteView view() const { return {data_.get(), size_}; }
  MutableByteView writable() { return {data_.get(), size_}; }
  std::size_t size() const { return size_; }
  void shrink(std::size_t size);  // REQUIRES: size <= this->size()

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
};

struct EncodedImage {
  EncodedBytes bytes;
  SourceInfo info;
};

}  // namespace millrace
