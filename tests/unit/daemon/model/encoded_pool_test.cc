// Memory of encoded images that is used again.
#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/bytes/encoded_pool.h"

namespace millrace {
namespace {

constexpr std::size_t kPage = 4096;

// Pages that stay in memory, as a driver wants them, of which there are only so many; then the heap's.
class LockedPages final : public BlockSource {
 public:
  explicit LockedPages(std::size_t most) : most_(most) {}

  std::byte* take(std::size_t bytes) override {
    if (locked() + bytes > most_) return heap_blocks().take(bytes);
    void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    mlock(pages, bytes);  // as far as this process may
    blocks_[static_cast<std::byte*>(pages)] = bytes;
    return static_cast<std::byte*>(pages);
  }
  void give(std::byte* block, std::size_t bytes) noexcept override {
    if (!owns(block)) return heap_blocks().give(block, bytes);
    given_back_ += blocks_.at(block) == bytes ? 1 : 0;
    blocks_.erase(block);
    munmap(block, bytes);
  }

  bool owns(const std::byte* block) const { return blocks_.contains(const_cast<std::byte*>(block)); }
  std::size_t locked() const {
    std::size_t bytes = 0;
    for (const auto& block : blocks_) bytes += block.second;
    return bytes;
  }
  int given_back() const { return given_back_; }

 private:
  const std::size_t most_;
  std::map<std::byte*, std::size_t> blocks_;
  int given_back_ = 0;
};

TEST_CASE("a block given back is the next one taken", "[encoded_pool]") {
  EncodedPool pool(1_MiB);
  EncodedPool::Block first = pool.take(10 * kPage);
  const std::byte* const at = first.data.get();
  pool.give(std::move(first));
  REQUIRE(pool.kept() == Bytes{10 * kPage});

  const EncodedPool::Block again = pool.take(8 * kPage);

  REQUIRE(again.data.get() == at);
  REQUIRE(again.capacity == 10 * kPage);
  REQUIRE(pool.kept() == 0_B);
  REQUIRE(pool.in_use() == Bytes{10 * kPage});
}

TEST_CASE("a block too small, or far too large, is not taken", "[encoded_pool]") {
  EncodedPool pool(1_MiB);
  pool.give(pool.take(10 * kPage));

  const EncodedPool::Block larger = pool.take(10 * kPage + 1);
  const EncodedPool::Block far_smaller = pool.take(6 * kPage);

  REQUIRE(larger.capacity == 11 * kPage);
  REQUIRE(far_smaller.capacity == 6 * kPage);
  REQUIRE(pool.kept() == Bytes{10 * kPage});
}

TEST_CASE("the pool keeps no more than its limit leaves beside what is in use", "[encoded_pool]") {
  EncodedPool pool(Bytes{10 * kPage});
  EncodedPool::Block in_use = pool.take(6 * kPage), first = pool.take(3 * kPage), second = pool.take(3 * kPage);
  const std::byte* const kept = second.data.get();

  pool.give(std::move(first));
  pool.give(std::move(second));

  REQUIRE(pool.kept() == Bytes{3 * kPage});
  REQUIRE(pool.take(3 * kPage).data.get() == kept);  // the first was kept longer, so it went
  pool.give(std::move(in_use));
}

TEST_CASE("many small blocks are not kept without end", "[encoded_pool]") {
  EncodedPool pool(1_GiB);
  std::vector<EncodedPool::Block> blocks;
  for (std::size_t i = 0; i < EncodedPool::kMostKept + 50; ++i) blocks.push_back(pool.take(1));

  for (EncodedPool::Block& block : blocks) pool.give(std::move(block));

  REQUIRE(pool.kept() == Bytes{EncodedPool::kMostKept * kPage});
  REQUIRE(pool.in_use() == 0_B);
}

TEST_CASE("encoded bytes go back to their pool once, wherever they were moved", "[encoded_pool]") {
  EncodedPool pool(1_MiB);
  constexpr std::size_t kBlock = 2 * kPage;  // for 1,000 bytes or 2,000, and what may be read behind them
  {
    EncodedBytes bytes(1000, &pool);
    std::memset(bytes.writable().data(), 7, bytes.size());
    EncodedBytes moved(std::move(bytes));
    EncodedBytes other(2000, &pool);
    other = std::move(moved);
    REQUIRE(other.size() == 1000);
    REQUIRE(other.view()[999] == std::byte{7});
    REQUIRE(pool.in_use() == Bytes{kBlock});
    REQUIRE(pool.kept() == Bytes{kBlock});
  }

  REQUIRE(pool.in_use() == 0_B);
  REQUIRE(pool.kept() == Bytes{2 * kBlock});
}

TEST_CASE("memory used again ends with zero bytes, too", "[encoded_pool]") {
  EncodedPool pool(1_MiB);
  {
    EncodedBytes bytes(7000, &pool);
    std::memset(bytes.writable().data(), 0xAA, bytes.size());
  }

  EncodedBytes again(6000, &pool);

  const std::byte* const slack = again.view().data() + again.size();
  const auto zero_behind = [&](std::size_t count) {
    return std::all_of(slack, slack + count, [](std::byte byte) { return byte == std::byte{0}; });
  };
  REQUIRE(zero_behind(EncodedBytes::kReadSlack));
  REQUIRE_FALSE(zero_behind(EncodedBytes::kRoomBehind));
  again.clear_behind();
  REQUIRE(zero_behind(EncodedBytes::kRoomBehind));
}

TEST_CASE("a tiny image lies in the block of the one before", "[encoded_pool]") {
  EncodedPool pool(1_MiB);
  const std::byte* const at = EncodedBytes(700, &pool).view().data();

  REQUIRE(EncodedBytes(690, &pool).view().data() == at);
  REQUIRE(EncodedBytes(1, &pool).view().data() == at);
}

TEST_CASE("images lie where the pool's source has memory, and each block goes back to where it came from",
          "[encoded_pool]") {
  LockedPages pages(4 * kPage);
  {
    EncodedPool pool(1_MiB, pages);
    EncodedBytes first(3 * kPage - EncodedBytes::kRoomBehind, &pool);
    REQUIRE(pages.owns(first.view().data()));

    EncodedBytes more(3 * kPage - EncodedBytes::kRoomBehind, &pool);  // the source has none left for it
    REQUIRE_FALSE(pages.owns(more.view().data()));

    const std::byte* const at = first.view().data();
    first = EncodedBytes();
    REQUIRE(pages.given_back() == 0);  // the pool keeps it
    EncodedBytes again(3 * kPage - EncodedBytes::kRoomBehind - 100, &pool);
    REQUIRE(again.view().data() == at);
  }
  REQUIRE(pages.locked() == 0);
  REQUIRE(pages.given_back() == 1);
}

TEST_CASE("a source that has nothing says so as the heap does, and nothing counts as in use", "[encoded_pool]") {
  class Empty final : public BlockSource {
    std::byte* take(std::size_t) override { throw std::bad_alloc(); }
    void give(std::byte*, std::size_t) noexcept override {}
  };
  Empty empty;
  EncodedPool pool(1_MiB, empty);

  REQUIRE_THROWS_AS(EncodedBytes(kPage, &pool), std::bad_alloc);
  REQUIRE(pool.in_use() == 0_B);
}

}  // namespace
}  // namespace millrace
