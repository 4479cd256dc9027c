#include "daemon/model/bytes/block_source.h"

#include <new>

namespace millrace {
namespace {

class Heap final : public BlockSource {
 public:
  std::byte* take(std::size_t bytes) override { return static_cast<std::byte*>(::operator new(bytes)); }
  void give(std::byte* block, std::size_t) noexcept override { ::operator delete(block); }
};

}  // namespace

BlockSource& heap_blocks() {
  static Heap* const heap = new Heap;  // images may outlive what is destroyed at the end
  return *heap;
}

}  // namespace millrace
