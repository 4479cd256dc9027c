// The input ring behind InputRing: the memfd that the daemon made, mapped for writing, and which of it is free.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "millrace/input_ring.h"
#include "proto/base/mutex.h"

namespace millrace {
inline namespace client {

// `size` rounded up to whole pages. kInvalid: 0, or so large that it cannot be rounded.
Result<Bytes> whole_pages(Bytes size);

struct InputRing::Shared : std::enable_shared_from_this<InputRing::Shared> {
 public:
  // Reserves the memory of `memfd`, which stays the caller's and may be closed afterwards, and maps it. kExhausted:
  // there is not so much.
  static Result<std::shared_ptr<Shared>> map(int memfd, Bytes size);
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  std::optional<std::uint64_t> take(std::uint64_t size) MILLRACE_EXCLUDES(mutex_);  // where; nullopt: no room
  void give_back(std::uint64_t offset, std::uint64_t size) MILLRACE_EXCLUDES(mutex_);

  std::span<std::byte> memory() const { return memory_; }

 private:
  explicit Shared(std::span<std::byte> memory) : memory_(memory), free_{{0, memory.size()}} {}

  std::span<std::byte> memory_;
  Mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_
      MILLRACE_GUARDED_BY(mutex_);  // offset to length; never touching each other
};

struct RingRoom::Block {
  Block(std::shared_ptr<InputRing::Shared> in, std::uint64_t at, std::uint64_t bytes)
      : ring(std::move(in)), offset(at), size(bytes) {}
  ~Block() { ring->give_back(offset, size); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::shared_ptr<InputRing::Shared> ring;  // shared with the other rooms
  std::uint64_t offset;
  std::uint64_t size;  // as asked for
};

}  // namespace client
}  // namespace millrace
