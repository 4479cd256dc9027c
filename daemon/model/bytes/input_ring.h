// The memory in which a session's client writes encoded images, as the session sees it and its batches read it.
// Thread-safe (read-only).
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/model/bytes/encoded_image.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class InputRing {
 public:
  virtual ~InputRing() = default;

  // A private copy, for its content may change at any time. kInvalid: the span is empty, not within the ring, or over
  // `limit`; kUnavailable, kExhausted: no memory.
  virtual Result<EncodedBytes> copy(std::uint64_t offset_untrusted, std::uint64_t length_untrusted, Bytes limit,
                                    EncodedPool* pool = nullptr) const = 0;
};

struct NewInputRing {
  std::shared_ptr<const InputRing> ring;  // shared: batches under way read from it when its session is gone
  UniqueFd clients;                       // writable; an open file of its own: no flag set on it touches the daemon's
};

class RingMaker {
 public:
  virtual ~RingMaker() = default;

  // kInvalid: 0 bytes; kExhausted: over `limit`, or the daemon has no descriptor or memory left.
  virtual Result<NewInputRing> make_ring(Bytes size_untrusted, Bytes limit) = 0;
};

}  // namespace millrace
