// Where the memory of encoded images comes from: the heap, or what a device reads without a copy by its driver (pinned
// pages, buffer objects). Thread-safe.
#pragma once

#include <cstddef>
#include <memory>

namespace millrace {

class BlockSource {
 public:
  virtual ~BlockSource() = default;  // all its blocks are back
  // `bytes`, aligned to 16, with any contents. Throws std::bad_alloc where the heap throws it; a source that has less
  // than the heap gives what the heap has when it has none left.
  virtual std::byte* take(std::size_t bytes) = 0;
  virtual void give(std::byte* block, std::size_t bytes) noexcept = 0;  // what take() gave for as many bytes
};

// What `new` gives. It is never destroyed.
BlockSource& heap_blocks();

// A block, which goes back to where it came from.
struct GiveBack {
  BlockSource* source = nullptr;
  std::size_t bytes = 0;
  void operator()(std::byte* block) const noexcept { source->give(block, bytes); }
};
using SourcedBlock = std::unique_ptr<std::byte[], GiveBack>;

inline SourcedBlock take_block(BlockSource& source, std::size_t bytes) {
  return {source.take(bytes), GiveBack{&source, bytes}};
}

}  // namespace millrace
