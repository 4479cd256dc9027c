// Memory for planes, aligned as the functions of kernels.h want it. Internal to kernels/augment. Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

#include "kernels/augment/kernels.h"

namespace millrace::kernels::augment {

constexpr std::size_t kAlignment = 64;

inline std::size_t padded(std::size_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}

class PlaneMemory {
 public:
  // At least so many bytes, which are 0 where nothing was written yet; what it held is lost if it had fewer. Throws
  // std::bad_alloc, and then holds none.
  void reserve(std::size_t bytes) {
    if (bytes <= bytes_) return;
    bytes_ = 0;
    memory_.reset();
    memory_.reset(static_cast<Byte*>(::operator new[](bytes, std::align_val_t{kAlignment})));
    std::memset(memory_.get(), 0, bytes);
    bytes_ = bytes;
  }

  // So many planes of three, one behind the other from plane `first` on, `stride` bytes apart.
  Planes planes(std::size_t first, std::size_t stride) const {
    Byte* const at = memory_.get() + first * stride;
    return {{at, at + stride, at + 2 * stride}};
  }

  std::size_t bytes() const { return bytes_; }

 private:
  struct Freed {
    void operator()(Byte* bytes) const { ::operator delete[](bytes, std::align_val_t{kAlignment}); }
  };

  std::unique_ptr<Byte[], Freed> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace millrace::kernels::augment
