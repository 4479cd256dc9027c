// Memory for vectors: aligned to 128 bytes, kept from image to image. Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace millrace::kernels::jpeg {

class AlignedBuffer {
 public:
  // At least `bytes`, zeroed when the memory is new; nullptr: there is none. What was there before counts as lost.
  std::uint8_t* reserve(std::size_t bytes) {
    if (bytes <= size_) return data_.get();
    data_.reset();
    size_ = 0;
    data_.reset(static_cast<std::uint8_t*>(::operator new(bytes, kAlignment, std::nothrow)));
    if (!data_) return nullptr;
    size_ = bytes;
    std::memset(data_.get(), 0, bytes);
    return data_.get();
  }
  std::uint8_t* data() { return data_.get(); }
  std::size_t size() const { return size_; }

  // Gives memory beyond `bytes` back.
  void trim(std::size_t bytes) {
    if (size_ <= bytes) return;
    data_.reset();
    size_ = 0;
  }

 private:
  static constexpr std::align_val_t kAlignment{128};
  struct Free {
    void operator()(std::uint8_t* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<std::uint8_t[], Free> data_;
  std::size_t size_ = 0;
};

}  // namespace millrace::kernels::jpeg
