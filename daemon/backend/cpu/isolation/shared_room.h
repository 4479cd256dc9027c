// Memory that a lane and its decoder process have in common: an object without a name, as long as the lane has made it.
// The lane reads through a mapping, and writes by calls, so that want of memory is an error instead of a signal.
// Thread-bound(the lane that owns it).
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class SharedRoom {
 public:
  // Empty. kUnavailable: descriptors, or memory.
  static Result<SharedRoom> create();
  SharedRoom(SharedRoom&& other) noexcept;
  SharedRoom& operator=(SharedRoom&&) = delete;
  ~SharedRoom() { unmap(); }

  int fd() const { return fd_.get(); }
  std::uint64_t size() const { return size_; }
  const std::uint8_t* data() const { return data_; }

  // At least so large; what is new reads as zero. Takes pages only as they are touched. Moves data(). kExhausted.
  Result<void> grow(std::uint64_t bytes);
  // kExhausted: no memory. REQUIRES: within size().
  Result<void> write(std::uint64_t at, ByteView bytes);
  // Gives the pages from `bytes` on back to the kernel.
  void shrink(std::uint64_t bytes);

 private:
  explicit SharedRoom(UniqueFd fd) : fd_(std::move(fd)) {}
  void unmap();

  UniqueFd fd_;
  std::uint8_t* data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace millrace
