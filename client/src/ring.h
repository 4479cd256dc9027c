// The input ring behind InputRing: a sealed memfd, mapped for writing, and which of it is free. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "millrace/input_ring.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"

namespace millrace {
inline namespace client {

struct InputRing::Shared : std::enable_shared_from_this<InputRing::Shared> {
 public:
  // Whole pages, sealed against shrinking and growing, so that the daemon can read it without fear.
  static Result<std::shared_ptr<Shared>> create(Bytes size);
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  std::optional<std::uint64_t> take(std::uint64_t size) MILLRACE_EXCLUDES(mutex_);  // where; nullopt: no room
  void give_back(std::uint64_t offset, std::uint64_t size) MILLRACE_EXCLUDES(mutex_);

  std::span<std::byte> memory() const { return memory_; }
  int memfd() const { return memfd_.get(); }

 private:
  Shared(UniqueFd memfd, std::span<std::byte> memory)
      : memfd_(std::move(memfd)), memory_(memory), free_{{0, memory.size()}} {}

  UniqueFd memfd_;
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
