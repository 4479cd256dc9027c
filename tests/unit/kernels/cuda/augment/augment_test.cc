// K3 on the host executor against the CPU's own code: kernels::Augmenter, ImageStore, and the padding and erasing of
// the daemon, with each target.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/unit/kernels/cuda/augment/augment_rig.h"

namespace millrace {
namespace {

using namespace kernels;
using cuda::Canvas;
using cuda::Erased;
using cuda::PadMode;

constexpr int kStepsButSums = static_cast<int>(Step::kSolarizeAdd) + 1;
constexpr StoreSpec kBytes{.dtype = DType::kUint8, .layout = Layout::kNhwc};

bool is_of_sum(Step step) {
  return step == Step::kMixStart || step == Step::kMixAdd || step == Step::kMixEnd;
}

void check_batch(const std::vector<AugmentCase>& cases, const StoreSpec& store, std::uint32_t seed) {
  AugmentBatch batch(store);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(seed, i, cases[i].size.width, cases[i].size.height, cases[i].operations.size());
    REQUIRE(batch.add(cases[i]) == "");
  }
  batch.run_on_host(seed);
  const Target other = seed % 2 == 0 ? Target::kScalar : best_target();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::string steps;
    for (const Operation& operation : cases[i].operations)
      steps += " " + std::to_string(static_cast<int>(operation.step));
    CAPTURE(seed, i, cases[i].size.width, cases[i].size.height, steps);
    REQUIRE(std::ranges::equal(batch.tensor(i), augmented_tensor(cases[i], store, other)));
  }
}

const std::vector<Size> kSizes{{1, 1},  {3, 5}, {96, 96}, {57, 31}, {40, 1},
                               {1, 40}, {2, 2}, {33, 64}, {8, 300}, {300, 7}};

}  // namespace

TEST_CASE("each step alone makes what the CPU makes of the picture", "[cuda][augment]") {
  for (int kind = 0; kind < kStepsButSums; ++kind) {
    const auto step = static_cast<Step>(kind);
    if (is_of_sum(step)) continue;
    const bool has_matrix = step == Step::kAffine || step == Step::kPerspective;
    AugmentRandom random(static_cast<std::uint32_t>(kind) + 1);
    for (std::uint32_t round = 0; round < (has_matrix ? 200 : 30); ++round) {
      std::vector<AugmentCase> cases;
      for (const Size size : kSizes) {
        AugmentCase& one = cases.emplace_back(random_picture(random, size));
        one.operations = {random_step(random, step, size)};
        if (size_after(size, one.operations) != size) one.operations.push_back(plain_step(Step::kQuarterTurns, 1, 3));
      }
      check_batch(cases, kBytes, round);
    }
  }
}

TEST_CASE("steps of the usual size make what the CPU makes", "[cuda][augment]") {
  AugmentRandom random(224);
  std::vector<AugmentCase> cases;
  for (int kind = 0; kind < kStepsButSums; ++kind) {
    if (is_of_sum(static_cast<Step>(kind))) continue;
    AugmentCase& one = cases.emplace_back(random_picture(random, {224, 224}));
    one.operations = {random_step(random, static_cast<Step>(kind), one.size)};
  }
  check_batch(cases, kBytes, 1);
}

TEST_CASE("coordinates are sums where Pillow's are: ten tenths are less than one", "[cuda][augment]") {
  AugmentRandom random(5);
  std::vector<AugmentCase> cases(2, random_picture(random, {40, 30}));
  Operation affine = plain_step(Step::kAffine);
  affine.matrix = {0.1, 0, -0.05, 0, 0.1, -0.05};
  cases[0].operations = {affine};
  affine.matrix = {0.1, 50000, -25000, 0.1, 0, -0.05};  // beyond fixed-point but for the first row
  cases[1].operations = {affine};
  check_batch(cases, kBytes, 1);
}

TEST_CASE("each hue of each colour of a cube is turned as on the CPU", "[cuda][augment]") {
  AugmentCase one{{256, 256}, {256, 256}, std::nullopt, {}, {}, {}};
  for (const int blue : {0, 1, 100, 254}) {
    one.pixels.clear();
    for (int i = 0; i < 1 << 16; ++i) {
      for (const int value : {i % 256, i / 256, blue}) one.pixels.push_back(static_cast<std::uint8_t>(value));
    }
    std::vector<AugmentCase> cases(2, one);
    cases[0].operations = {plain_step(Step::kHue, 1, 0)};
    cases[1].operations = {plain_step(Step::kHue, 1, 30 + blue)};
    check_batch(cases, kBytes, static_cast<std::uint32_t>(blue));
  }
}

TEST_CASE("random lists of steps make what the CPU makes, stored as any tensor", "[cuda][augment]") {
  AugmentRandom random(7);
  for (std::uint32_t round = 0; round < 250; ++round) {
    const StoreSpec store = random_store(random);
    std::vector<AugmentCase> cases;
    for (const Size size : kSizes) {
      AugmentCase& one = cases.emplace_back(random_picture(random, size));
      one.operations = random_steps(random, size, 1 + random() % 20);
      one.erased = random_erased(random, size, store.dtype);
    }
    check_batch(cases, store, round);
  }
}

TEST_CASE("sums of chains, one after the other and among steps, are the CPU's", "[cuda][augment]") {
  AugmentRandom random(8);
  for (std::uint32_t round = 0; round < 250; ++round) {
    std::vector<AugmentCase> cases;
    for (const Size size : kSizes) {
      AugmentCase& one = cases.emplace_back(random_picture(random, size));
      for (std::size_t part = 1 + random() % 2; part > 0; --part) {
        const auto before = random_steps(random, size, random() % 3);
        const auto sum = random_sum(random, size, random() % 12);
        one.operations.insert(one.operations.end(), before.begin(), before.end());
        one.operations.insert(one.operations.end(), sum.begin(), sum.end());
      }
    }
    check_batch(cases, kBytes, round);
  }
}

TEST_CASE("a sum of the most pictures is the CPU's", "[cuda][augment]") {
  AugmentRandom random(9);
  for (const Step last : {Step::kGaussianBlur, Step::kPillowBlur, Step::kBrightness}) {
    AugmentCase one = random_picture(random, {57, 31});
    one.operations = {plain_step(Step::kMixStart, 0.1F)};
    for (int i = 0; i < kMostMixed; ++i) {
      one.operations.push_back(random_step(random, i % 2 == 0 ? last : Step::kFlipHorizontal, one.size));
      one.operations.push_back(plain_step(Step::kMixAdd, 0.1F));
    }
    one.operations.push_back(random_step(random, last, one.size));  // in no picture of the sum
    one.operations.push_back(plain_step(Step::kMixEnd, 0.7F));
    check_batch({one}, kBytes, 3);
  }
}

TEST_CASE("canvases show what numpy.pad shows, on any side and beyond", "[cuda][augment]") {
  AugmentRandom random(10);
  for (std::uint32_t round = 0; round < 150; ++round) {
    const StoreSpec store = random_store(random);
    std::vector<AugmentCase> cases;
    for (const Size size : kSizes) {
      AugmentCase& one = cases.emplace_back(random_picture(random, size));
      put_random_canvas(random, one);
      if (round % 2 == 0) one.operations = random_steps(random, size, 1 + random() % 3);
      one.erased = random_erased(random, size, store.dtype);
    }
    check_batch(cases, store, round);
  }
}

TEST_CASE("tensors of every kind hold patches or rows, erased in any element", "[cuda][augment]") {
  AugmentRandom random(11);
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    for (const ChannelOrder channels : {ChannelOrder::kRgb, ChannelOrder::kBgr, ChannelOrder::kGrey}) {
      for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
        const StoreSpec store{.dtype = dtype, .layout = layout, .channels = channels};
        AugmentCase one = random_picture(random, {29, 13});
        one.erased = {{{2, 3, 20, 5}, {1, 2, 3}}, {{0, 0, 4, 13}, {0.5F, 1.5F, 2.5F}}, {{28, 12, 1, 1}, {0, 9, 255}}};
        AugmentCase stepped = one;
        stepped.operations = {plain_step(Step::kInvert), plain_step(Step::kFlipHorizontal)};
        check_batch({one, stepped}, store, 5);
      }
      for (const Patches patches : {Patches{4, 6, 2, 2}, Patches{3, 1, 1, 1}, Patches{1, 5, 3, 3}}) {
        const StoreSpec store{.dtype = dtype, .channels = channels, .patches = patches};
        AugmentCase one = random_picture(random, {24, 60});
        AugmentCase stepped = one;
        stepped.operations = {plain_step(Step::kSharpness, 2)};
        check_batch({one, stepped}, store, 6);
      }
    }
  }
}

TEST_CASE("pictures of images that are not done are left alone", "[cuda][augment]") {
  AugmentRandom random(12);
  AugmentBatch batch(kBytes);
  AugmentCase one = random_picture(random, {9, 9});
  one.operations = {plain_step(Step::kEqualize)};
  for (int i = 0; i < 3; ++i) REQUIRE(batch.add(one) == "");
  batch.set_status(1, cuda::Status::kNotHere);
  batch.run_on_host(1);
  CHECK(std::ranges::equal(batch.tensor(0), augmented_tensor(one, kBytes, Target::kScalar)));
  CHECK(std::ranges::all_of(batch.tensor(1), [](std::byte value) { return value == std::byte{0xA5}; }));
  CHECK(std::ranges::equal(batch.tensor(2), batch.tensor(0)));
}

TEST_CASE("steps that map values are one pass, and steps in place take one buffer", "[cuda][augment]") {
  AugmentRandom random(13);
  AugmentBatch batch(kBytes);
  AugmentCase one = random_picture(random, {16, 16});
  const auto buffers_of = [&](std::vector<Operation> operations) {
    const std::uint64_t before = batch.plan().scratch_bytes;
    one.operations = std::move(operations);
    REQUIRE(batch.add(one) == "");
    return (batch.plan().scratch_bytes - before) / (16 * 16 * 4);
  };
  const Operation invert = plain_step(Step::kInvert), flip = plain_step(Step::kFlipVertical);
  const Operation start = plain_step(Step::kMixStart), more = plain_step(Step::kMixAdd, 0.2F);
  CHECK(buffers_of({}) == 0);
  CHECK(buffers_of({invert, plain_step(Step::kContrast, 2), invert, plain_step(Step::kHue, 1, 4)}) == 1);
  CHECK(batch.plan().steps[1].chained == 0);
  CHECK(batch.plan().steps[2].chained == 1);
  CHECK(buffers_of({flip, flip, plain_step(Step::kPillowBlur, 2)}) == 2);
  CHECK(buffers_of({plain_step(Step::kGaussianBlur, 1, 3)}) == 4);
  CHECK(buffers_of({start, invert, more, flip, flip, more, invert, more, plain_step(Step::kMixEnd)}) == 4);
}

TEST_CASE("what cannot be done is refused, and leaves the plan as it was", "[cuda][augment]") {
  AugmentRandom random(14);
  const AugmentCase good = random_picture(random, {12, 8});
  AugmentBatch batch(kBytes);
  const auto reason = [&](AugmentCase one) {
    const std::size_t jobs = batch.plan().jobs.size(), steps = batch.plan().steps.size();
    const std::string_view why = batch.add(one);
    CHECK((why.empty() || (batch.plan().jobs.size() == jobs && batch.plan().steps.size() == steps)));
    return why;
  };
  const auto with_steps = [&](std::vector<Operation> operations) {
    AugmentCase one = good;
    one.operations = std::move(operations);
    return reason(one);
  };
  CHECK(with_steps({plain_step(Step::kPosterize, 1, 9)}) == "operations that are not valid");
  CHECK(with_steps({plain_step(static_cast<Step>(99))}) == "operations that are not valid");
  CHECK(with_steps({plain_step(Step::kBrightness, std::numeric_limits<float>::quiet_NaN())}) != "");
  CHECK(with_steps(std::vector<Operation>(10'000, plain_step(Step::kInvert))) == "operations that are not valid");
  CHECK(with_steps({plain_step(Step::kQuarterTurns, 1, 1)}) == "operations that change the picture's size");
  CHECK(with_steps({plain_step(Step::kQuarterTurns, 1, 2)}) == "");
  CHECK(with_steps(std::vector<Operation>(kMostOperations, plain_step(Step::kPillowBlur, 1))) == "");

  AugmentCase other = good;
  other.inner.width = 11;
  CHECK(reason(other) == "a picture of another size than its tensor");
  other = good;
  other.erased = {{{11, 0, 2, 1}, {}}};
  CHECK(reason(other) == "an erased box outside the tensor");
  other.erased = {{{1, 0, 2, 1}, {0, 255.6F, 0}}};
  CHECK(reason(other) == "an erased value that no element has");
  other.erased = {{{1, 0, 2, 1}, {0, std::nanf(""), 0}}};
  CHECK(reason(other) == "an erased value that no element has");

  const auto with_canvas = [&](const Canvas& canvas) {
    AugmentCase one = good;
    one.canvas = canvas;
    one.inner = {canvas.inner.width, canvas.inner.height};
    return reason(one);
  };
  const Canvas canvas{PadMode::kEdge, {}, {20, 20}, {0, 0, 20, 20}, {-3, 4, 12, 8}};
  Canvas changed = canvas;
  changed.inner = {0, 0, 8, 20};
  CHECK(with_canvas(changed) == "a canvas that shows more than the picture has");
  changed.inner = {1, 0, 19, 20};
  CHECK(with_canvas(changed) == "a canvas that shows more than the picture has");
  changed = canvas;
  changed.resized = {0, 20};
  CHECK(with_canvas(changed) == "a canvas around nothing");
  changed = canvas;
  changed.shown.left = std::numeric_limits<int>::min();
  CHECK(with_canvas(changed) == "a canvas that reaches too far");
  changed = canvas;
  changed.shown.width = 13;
  CHECK(with_canvas(changed) == "a canvas of another size than the tensor");

  cuda::PicturePlan plan;
  const auto stored = [&](Size size, const StoreSpec& store, std::vector<Erased> erased = {},
                          std::uint64_t output = 0) {
    return append_picture({.output = output, .inner = size, .size = size, .erased = erased}, store, plan);
  };
  CHECK(stored({kLongestSide + 1, 1}, kBytes).starts_with("a picture of no pixels, of more than 16,384 a side"));
  CHECK(stored({0, 1}, kBytes).starts_with("a picture of no pixels"));
  const std::vector<Operation> many(17, plain_step(Step::kInvert));  // 2^24 pixels, 2^28 of them are the bound
  CHECK(append_picture({.inner = {4096, 4096}, .size = {4096, 4096}, .operations = many}, kBytes, plan) ==
        "more steps on so large a picture than a thread block does");
  CHECK(stored({12, 8}, {.patches = Patches{5, 4, 1, 1}}) == "a picture of no whole groups of patches");
  CHECK(stored({12, 8}, {.patches = Patches{4, 4, 1, 0}}) == "a picture of no whole groups of patches");
  CHECK(stored({12, 8}, {.patches = Patches{4, 4, 1, 1}}, {{{0, 0, 1, 1}, {}}}) == "erased patches");
  CHECK(stored({8192, 8192}, {.dtype = DType::kFloat32, .patches = Patches{4, 4, 1, 3}}) ==
        "a tensor of 2 GiB or more");
  CHECK(stored({12, 8}, {.dtype = DType::kFloat32}, {}, 6) == "a tensor that is not aligned to its elements");
  CHECK(plan.jobs.empty());
}

}  // namespace millrace
