// The memory in which a client writes encoded images: a memfd of the client's, sealed so that it stays as large as it
// is. Its content may change at any time: copy first, then look. It is read with pread(2), never mapped: no fault can
// reach the daemon, and what the client punches out again is not charged to the daemon's memory. Thread-safe
// (read-only).
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/model/encoded_image.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class InputRing {
 public:
  // Checks the descriptor: a readable memfd with F_SEAL_SHRINK and F_SEAL_GROW, exactly `size` bytes (kInvalid
  // otherwise), at least 1 and within `limit` (kExhausted otherwise).
  static Result<std::shared_ptr<const InputRing>> create(UniqueFd memfd_untrusted, Bytes size_untrusted, Bytes limit);

  // A private copy. kInvalid: the span is empty, not within the ring, or over `limit`; kUnavailable, kExhausted: no
  // memory.
  Result<EncodedBytes> copy(std::uint64_t offset_untrusted, std::uint64_t length_untrusted, Bytes limit,
                            EncodedPool* pool = nullptr) const;

 private:
  InputRing(UniqueFd memfd, Bytes size) : memfd_(std::move(memfd)), size_(size) {}

  UniqueFd memfd_;
  Bytes size_;
};

}  // namespace millrace
