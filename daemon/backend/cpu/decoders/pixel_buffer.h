// Memory for one decoded picture, kept from image to image so that a lane allocates nothing once it has seen the sizes
// that occur. Contents are never cleared: its user writes all that is read from it. The memory may be
// somebody else's, as much as there is. Thread-bound(the lane that owns it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace millrace {

class PixelBuffer {
 public:
  // Beyond this a buffer is given back after the image, so that one giant does not stay for good.
  static constexpr std::size_t kKept = std::size_t{16} << 20;
  // Readable before and behind the bytes asked for: the resampler loads whole vectors, which may begin or end outside
  // the part of a picture that it needs (never outside the picture's rows); what it finds there counts for nothing.
  static constexpr std::size_t kSlack = 64;

  PixelBuffer() = default;
  // In `bytes` of memory that outlive this, slack included.
  PixelBuffer(std::uint8_t* memory, std::size_t bytes)
      : lent_(memory), size_(bytes < 2 * kSlack ? 0 : bytes - 2 * kSlack) {}

  // `bytes` of memory with unknown contents, good until the next call; nullptr when there is no memory.
  std::uint8_t* reserve(std::size_t bytes) {
    if (lent_ != nullptr) return bytes <= size_ ? lent_ + kSlack : nullptr;
    if (bytes > size_ || !data_) {
      data_.reset();
      data_.reset(new (std::nothrow) std::uint8_t[kSlack + bytes + kSlack]);
      size_ = data_ ? bytes : 0;
    }
    return data_ ? data_.get() + kSlack : nullptr;
  }

  void trim() {
    if (lent_ != nullptr || size_ <= kKept) return;
    data_.reset();
    size_ = 0;
  }

 private:
  std::uint8_t* lent_ = nullptr;
  std::unique_ptr<std::uint8_t[]> data_;
  std::size_t size_ = 0;
};

}  // namespace millrace
