// K3 with a thread of this process for each of a GPU's (thread_block.h): its tensors are the host executor's, and
// ThreadSanitizer sees what its threads share.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/kernels/cuda/augment/augment_rig.h"
#include "tests/unit/kernels/cuda/thread_block.h"

namespace millrace {
namespace {

using namespace kernels;

void check_augmented_on_threads(const std::vector<AugmentCase>& cases, const StoreSpec& store) {
  AugmentBatch expected(store), made(store);
  for (const AugmentCase& one : cases) {
    REQUIRE(expected.add(one) == "");
    REQUIRE(made.add(one) == "");
  }
  expected.run_on_host(1);
  made.run([](const cuda::Grid& grid, const auto& kernel) {
    run_on_threads({grid.blocks, grid.threads, 1}, [&](ThreadBlock& block) { kernel(block); });
  });
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    REQUIRE(std::ranges::equal(made.tensor(i), expected.tensor(i)));
  }
}

}  // namespace

TEST_CASE("each step by threads makes the host executor's tensor", "[cuda][threads]") {
  AugmentRandom random(3);
  std::vector<AugmentCase> cases;
  for (int kind = 0; kind <= static_cast<int>(Step::kSolarizeAdd); ++kind) {
    const auto step = static_cast<Step>(kind);
    if (step == Step::kMixStart || step == Step::kMixAdd || step == Step::kMixEnd) continue;
    const int rounds = step == Step::kAffine || step == Step::kPerspective ? 6 : 1;
    for (int round = 0; round < rounds; ++round) {
      AugmentCase& one = cases.emplace_back(random_picture(random, {19, 21}));
      one.operations = {random_step(random, step, one.size)};
      if (size_after(one.size, one.operations) != one.size)
        one.operations.push_back(plain_step(Step::kQuarterTurns, 1, 1));
    }
  }
  check_augmented_on_threads(cases, {.dtype = DType::kUint8});
}

TEST_CASE("lists, sums, canvases and erased boxes by threads make the host executor's tensors", "[cuda][threads]") {
  AugmentRandom random(4);
  std::vector<AugmentCase> cases;
  for (const Size size : {Size{24, 18}, Size{5, 3}, Size{40, 33}, Size{1, 1}, Size{30, 2}, Size{300, 3}}) {
    AugmentCase& one = cases.emplace_back(random_picture(random, size));
    one.operations = random_steps(random, size, 10);
    AugmentCase& sum = cases.emplace_back(random_picture(random, size));
    put_random_canvas(random, sum);
    sum.operations = random_sum(random, size, 8);
    sum.erased = {{{0, 0, size.width, size.height}, {1, 2, 3}}, {{0, 0, 1, 1}, {4, 5, 6}}};
    // Tables, one after the other: statistics, and steps that are chained to them.
    AugmentCase& tables = cases.emplace_back(random_picture(random, size));
    tables.operations = {plain_step(Step::kEqualize),       plain_step(Step::kInvert),
                         plain_step(Step::kAutocontrast),   plain_step(Step::kSolarize, 90),
                         plain_step(Step::kContrast, 1.4F), plain_step(Step::kBrightness, 0.7F),
                         plain_step(Step::kContrast, 0.5F), plain_step(Step::kEqualize)};
  }
  check_augmented_on_threads(cases, {.dtype = DType::kFloat16, .channels = ChannelOrder::kBgr});
}

}  // namespace millrace
