// Memory of encoded images that is used again.
#include <catch2/catch.hpp>
#include <cstring>
#include <utility>

#include "daemon/model/encoded_image.h"
#include "daemon/model/encoded_pool.h"

namespace millrace {
namespace {

constexpr std::size_t kPage = 4096;

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
  {
    EncodedBytes bytes(1000, &pool);
    std::memset(bytes.writable().data(), 7, bytes.size());
    EncodedBytes moved(std::move(bytes));
    EncodedBytes other(2000, &pool);
    other = std::move(moved);
    REQUIRE(other.size() == 1000);
    REQUIRE(other.view()[999] == std::byte{7});
    REQUIRE(pool.in_use() == Bytes{kPage});
    REQUIRE(pool.kept() == Bytes{kPage});
  }

  REQUIRE(pool.in_use() == 0_B);
  REQUIRE(pool.kept() == Bytes{2 * kPage});
}

TEST_CASE("memory used again ends with zero bytes, too", "[encoded_pool]") {
  EncodedPool pool(1_MiB);
  {
    EncodedBytes bytes(3000, &pool);
    std::memset(bytes.writable().data(), 0xAA, bytes.size());
  }

  const EncodedBytes again(2900, &pool);

  const std::byte* const slack = again.view().data() + again.size();
  for (std::size_t i = 0; i < EncodedBytes::kReadSlack; ++i) REQUIRE(slack[i] == std::byte{0});
}

}  // namespace
}  // namespace millrace
