// An input ring: a memfd that the daemon makes, sealed so that it stays as large as it is, and whose writable
// descriptor goes to the client. The daemon makes it empty and keeps a read-only descriptor: the process that touches a
// page first pays for it, and that is the client.
//
// It is read with pread(2), never mapped: no fault can reach the daemon, and where nothing was written it reads zeros
// without taking memory. Thread-safe (read-only).
#pragma once

#include <cstdint>

#include "daemon/model/bytes/input_ring.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class SealedRing final : public InputRing {
 public:
  // RingMaker's contract.
  static Result<NewInputRing> create(Bytes size_untrusted, Bytes limit);

  Result<EncodedBytes> copy(std::uint64_t offset_untrusted, std::uint64_t length_untrusted, Bytes limit,
                            EncodedPool* pool = nullptr) const override;

 private:
  SealedRing(UniqueFd memfd, Bytes size) : memfd_(std::move(memfd)), size_(size) {}

  UniqueFd memfd_;
  Bytes size_;
};

}  // namespace millrace
