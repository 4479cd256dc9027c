// Encoded images in shared memory: for clients that hold the bytes already (a request's body, an archive) and have more
// of them than one message may carry. The daemon makes the ring once, on request; then submitting costs a few bytes
// an image.
//
//   MILLRACE_TRY(auto ring, session.open_ring(64_MiB));
//   MILLRACE_TRY(auto room, ring.allocate(jpeg.size()));
//   std::memcpy(room.bytes().data(), jpeg.data(), jpeg.size());
//   session.submit({.samples = {{.source = room}}});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "millrace/export.h"
#include "millrace/result.h"

namespace millrace {
inline namespace client {

// A stretch of the ring. Copies share it; a submitted batch holds a copy until it has completed or failed, and the room
// is free again when the last copy is gone. Do not write to it while a batch with it is under way. Thread-safe but for
// the bytes.
class MILLRACE_API RingRoom {
 public:
  RingRoom() = default;  // no room
  std::span<std::byte> bytes() const noexcept;
  std::uint64_t offset() const noexcept;  // from the ring's start

  struct Block;  // the library's own
  explicit RingRoom(std::shared_ptr<Block> block) noexcept : block_(std::move(block)) {}

 private:
  std::shared_ptr<Block> block_;  // shared between the writer and the batches under way
};

// Thread-safe. One a session.
class MILLRACE_API InputRing {
 public:
  // Room for `size` bytes, first fit. kExhausted: the ring is full for now; take batches and try again. kInvalid:
  // larger than the ring, or 0.
  Result<RingRoom> allocate(std::size_t size);
  Bytes size() const noexcept;

  struct Shared;  // the library's own
  explicit InputRing(std::shared_ptr<Shared> shared) noexcept : shared_(std::move(shared)) {}

 private:
  std::shared_ptr<Shared> shared_;  // shared with the rooms
};

}  // namespace client
}  // namespace millrace
