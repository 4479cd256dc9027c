// Memory of encoded images that is used again. A lane's input comes and goes a thousand times a second, by way of three
// threads: without this, each image's pages are fetched from the kernel, zeroed, and taken away again, for which every
// lane is interrupted. Where the blocks come from is the source's matter. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/model/bytes/block_source.h"
#include "proto/base/bytes.h"
#include "proto/base/mutex.h"

namespace millrace {

class EncodedPool {
 public:
  static constexpr std::size_t kMostKept = 256;  // blocks

  struct Block {
    SourcedBlock data;  // with any contents
    std::size_t capacity = 0;
  };

  // Keeps nothing that would bring what is in use and what is kept over `limit`. `source` outlives it.
  explicit EncodedPool(Bytes limit, BlockSource& source = heap_blocks());

  // At least `size` bytes: a block given back before, of at most half as much or a page more, the last one first; else a
  // new one. Throws std::bad_alloc as the source does.
  Block take(std::size_t size) MILLRACE_EXCLUDES(mutex_);
  // What take() gave. The blocks that have been kept longest go first.
  void give(Block block) noexcept MILLRACE_EXCLUDES(mutex_);

  // From here on; what is kept goes when others come.
  void limit_to(Bytes limit) MILLRACE_EXCLUDES(mutex_);

  Bytes in_use() const MILLRACE_EXCLUDES(mutex_);
  Bytes kept() const MILLRACE_EXCLUDES(mutex_);

 private:
  Block take_kept(std::size_t size) MILLRACE_EXCLUDES(mutex_);
  Block take_surplus() MILLRACE_EXCLUDES(mutex_);

  BlockSource& source_;
  mutable Mutex mutex_;
  std::size_t limit_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<Block> kept_ MILLRACE_GUARDED_BY(mutex_);  // the one given back last at the end
  std::size_t kept_bytes_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::size_t in_use_ MILLRACE_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
