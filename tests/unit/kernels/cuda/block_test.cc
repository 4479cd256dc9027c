// The host executor of CUDA kernels: what a block promises, and that mistakes show.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>
#include <vector>

#include "kernels/cuda/host_block.h"

namespace millrace::kernels::cuda {
namespace {

struct Shared {
  int values[96];
};

}  // namespace

TEST_CASE("a phase runs once for every thread, in another order each time", "[cuda]") {
  HostBlock block(0, 96, 1);
  std::set<std::vector<int>> orders;

  for (int phase = 0; phase < 20; ++phase) {
    std::vector<int> order;
    block.each([&](int thread) { order.push_back(thread); });
    orders.insert(order);
    std::sort(order.begin(), order.end());
    std::vector<int> all(96);
    std::iota(all.begin(), all.end(), 0);
    REQUIRE(order == all);
  }

  REQUIRE(orders.size() == 20);
}

TEST_CASE("a sum over a block gives each thread the sum of those before it", "[cuda]") {
  HostBlock block(3, 96, 1);
  auto values = block.per_thread<int>();
  block.each([&](int thread) { values[thread] = 2 * thread - 50; });

  const int total = block.exclusive_sum(values);

  REQUIRE(total == 95 * 96 - 50 * 96);
  bool right = true;
  block.each([&](int thread) { right = right && values[thread] == thread * (thread - 1) - 50 * thread; });
  REQUIRE(right);
}

TEST_CASE("the least of a block and whether any is true are found wherever they are", "[cuda]") {
  HostBlock block(0, 64, 1);
  auto values = block.per_thread<int>();
  auto flags = block.per_thread<bool>();
  for (int at = 0; at < 64; ++at) {
    block.each([&](int thread) {
      values[thread] = thread == at ? -7 : thread;
      flags[thread] = thread == at;
    });
    REQUIRE(block.min_of(values) == -7);
    REQUIRE(block.any(flags));
  }
  block.each([&](int thread) { flags[thread] = false; });
  REQUIRE_FALSE(block.any(flags));
}

TEST_CASE("shared memory is one for the block, and begins as anything", "[cuda]") {
  HostBlock block(0, 96, 1), other(1, 96, 1);

  REQUIRE(&block.shared<Shared>() == &block.shared<Shared>());
  REQUIRE(&block.shared<Shared>() != &other.shared<Shared>());
  REQUIRE(block.shared<Shared>().values[5] != other.shared<Shared>().values[5]);
}

TEST_CASE("what depends on the order of threads within a phase shows", "[cuda]") {
  std::set<int> results;
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    HostBlock block(0, 96, seed);
    auto& shared = block.shared<Shared>();
    block.each([&](int thread) { shared.values[thread] = 0; });
    block.each([&](int thread) { shared.values[0] = shared.values[0] * 3 % 1009 + thread; });
    results.insert(shared.values[0]);
  }
  REQUIRE(results.size() > 1);
}

TEST_CASE("a grid runs every block once, and atomic sums hold", "[cuda]") {
  int sum = 0;
  std::vector<int> runs(37);
  run_grid({.blocks = 37, .threads = 32, .seed = 5}, [&](HostBlock& block) {
    ++runs[static_cast<std::size_t>(block.index())];
    block.each([&](int) { HostBlock::atomic_add(&sum, 1); });
  });
  REQUIRE(runs == std::vector<int>(37, 1));
  REQUIRE(sum == 37 * 32);
}

}  // namespace millrace::kernels::cuda
