// The executor of CUDA kernels with a thread for each thread of a block: what a block promises, and that threads which
// part ways are found.
#include <catch2/catch.hpp>

#include "tests/unit/kernels/cuda/thread_block.h"

namespace millrace {
namespace {

using Catch::Matchers::Contains;

struct SharedCounts {
  int values[64];
};

TEST_CASE("each block of a grid runs once, side by side or not, and phases see what the ones before wrote",
          "[cuda][threads]") {
  for (const int side_by_side : {1, 3}) {
    std::vector<int> sums(7);
    int threads_run = 0;
    run_on_threads({.blocks = 7, .threads = 64, .side_by_side = side_by_side}, [&](ThreadBlock& block) {
      auto& shared = block.shared<SharedCounts>();
      block.each([&](int thread) { shared.values[thread] = thread * block.index(); });
      block.each([&](int thread) {
        ThreadBlock::atomic_add(&threads_run, 1);
        if (thread == 0) {
          for (const int value : shared.values) sums[static_cast<std::size_t>(block.index())] += value;
        }
      });
    });
    REQUIRE(threads_run == 7 * 64);
    for (int i = 0; i < 7; ++i) REQUIRE(sums[static_cast<std::size_t>(i)] == i * 63 * 32);
  }
}

TEST_CASE("the collectives of threads are those of the host executor", "[cuda][threads]") {
  std::vector<int> before(64), totals(64), least(64), found(64);
  run_on_threads({.blocks = 1, .threads = 64}, [&](ThreadBlock& block) {
    auto values = block.per_thread<int>();
    auto is_last = block.per_thread<bool>();
    int own = 0;
    block.each([&](int thread) {
      values[thread] = 2 * thread - 50;
      is_last[thread] = thread == 63;
      own = thread;
    });
    const auto at = static_cast<std::size_t>(own);
    least[at] = block.min_of(values);
    totals[at] = block.exclusive_sum(values);
    found[at] = block.any(is_last) ? 1 : 0;
    block.each([&](int thread) {
      before[at] = values[thread];
      is_last[thread] = false;
    });
    if (block.any(is_last)) found[at] = 2;
  });
  for (int thread = 0; thread < 64; ++thread) {
    const auto at = static_cast<std::size_t>(thread);
    CHECK(before[at] == thread * (thread - 1) - 50 * thread);
    CHECK(totals[at] == 63 * 64 - 50 * 64);
    CHECK(least[at] == -50);
    CHECK(found[at] == 1);
  }
}

TEST_CASE("threads that come to unlike phases are found, and where they are", "[cuda][threads]") {
  const auto kernel = [](ThreadBlock& block) {
    int own = 0;
    block.each([&](int thread) { own = thread; });
    if (own % 2 == 0) block.each([](int) {});
    block.each([](int) {});
  };
  REQUIRE_THROWS_WITH(run_on_threads({.blocks = 2, .threads = 32}, kernel),
                      Contains("threads part ways: one is at ") && Contains("thread_block_test.cc:"));
}

TEST_CASE("a thread that ends while others go on is found", "[cuda][threads]") {
  const auto kernel = [](ThreadBlock& block) {
    int own = 0;
    block.each([&](int thread) { own = thread; });
    if (own == 31) return;
    block.each([](int) {});
  };
  REQUIRE_THROWS_WITH(run_on_threads({.blocks = 1, .threads = 32}, kernel), Contains("the kernel's end"));
}

TEST_CASE("a thread that looks at another one's value is found", "[cuda][threads]") {
  const auto kernel = [](ThreadBlock& block) {
    auto values = block.per_thread<int>();
    block.each([&](int thread) { values[thread] = thread; });
    block.each([&](int thread) { values[thread] = values[0]; });
  };
  REQUIRE_THROWS_WITH(run_on_threads({.blocks = 1, .threads = 32}, kernel), Contains("another one's value"));
}

}  // namespace
}  // namespace millrace
