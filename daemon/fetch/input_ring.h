// The memory in which a client writes encoded images: a memfd that the daemon makes, sealed so that it stays as large
// as it is, and whose writable descriptor goes to the client. The daemon makes it empty and keeps a read-only
// descriptor: whoever touches a page first pays for it, and that is the client.
//
// Its content may change at any time: copy first, then look. It is read with pread(2), never mapped: no fault can reach
// the daemon, and where nothing was written it reads zeros without taking memory. Thread-safe (read-only).
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/model/encoded_image.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

struct NewInputRing;

class InputRing {
 public:
  // kInvalid: 0 bytes; kExhausted: over `limit`, or the daemon has no descriptor or memory left.
  static Result<NewInputRing> create(Bytes size_untrusted, Bytes limit);

  // A private copy. kInvalid: the span is empty, not within the ring, or over `limit`; kUnavailable, kExhausted: no
  // memory.
  Result<EncodedBytes> copy(std::uint64_t offset_untrusted, std::uint64_t length_untrusted, Bytes limit,
                            EncodedPool* pool = nullptr) const;

 private:
  InputRing(UniqueFd memfd, Bytes size) : memfd_(std::move(memfd)), size_(size) {}

  UniqueFd memfd_;
  Bytes size_;
};

struct NewInputRing {
  std::shared_ptr<const InputRing> ring;
  UniqueFd clients;  // writable; an open file of its own, so that no flag set on it touches the daemon's
};

}  // namespace millrace
