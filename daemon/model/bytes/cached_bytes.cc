#include "daemon/model/bytes/cached_bytes.h"

#include <cstring>

namespace millrace {

CachedBlock::CachedBlock(std::size_t size, std::size_t padding)
    : data_(new std::byte[size + padding]), size_(size), padding_(padding) {
  std::memset(data_.get() + size, 0, padding);
}

CachedBytes CachedBlock::copy_of(ByteView bytes, std::size_t padding) {
  const auto block = std::make_shared<CachedBlock>(bytes.size(), padding);
  if (!bytes.empty()) std::memcpy(block->writable().data(), bytes.data(), bytes.size());
  return block;
}

}  // namespace millrace
