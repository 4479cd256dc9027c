// K3, the augmentation for GPUs, and its planner on the host executor: no list of operations, valid or not, makes them
// touch what is not theirs, and what is valid becomes what the CPU makes of it. Bytes are a tensor's kind and size,
// then perhaps a canvas and erased boxes, then operations up to the end. What is missing is 0.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tests/unit/kernels/cuda/augment/augment_rig.h"

namespace {

using namespace millrace;
using kernels::Operation;
using kernels::Step;
using kernels::cuda::PadMode;

constexpr std::int64_t kMostPixels = 1 << 12;
constexpr int kMostWalk = 1 << 12;  // of the reference, beyond an edge

void require(bool condition) {
  if (!condition) std::abort();
}

class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool is_over() const { return bytes_.empty(); }
  unsigned byte() {
    if (bytes_.empty()) return 0;
    const unsigned value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  std::uint32_t word() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | byte();
    return value;
  }
  // Mostly small, and of either sign.
  int integer() {
    const unsigned kind = byte();
    return kind < 0xF0 ? static_cast<int>(kind) - 100 : static_cast<int>(word());
  }
  // Mostly of a tensor.
  int side() { return static_cast<int>(static_cast<unsigned>(integer()) + 100); }
  double real() {
    const unsigned kind = byte();
    if (kind >= 0xF0) return std::bit_cast<double>(std::uint64_t{word()} << 32 | word());
    const double small = static_cast<double>(static_cast<int>(byte()) - 128);
    return kind < 0x60 ? small / 64 : kind < 0xC0 ? small : small * 1000;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

kernels::Box some_box(Choices& from) {
  const int left = from.integer(), top = from.integer(), width = from.integer(), height = from.integer();
  return {left, top, width, height};
}

Operation some_operation(Choices& from) {
  Operation operation;
  operation.step = static_cast<Step>(from.byte());
  operation.value = from.integer();
  operation.factor = static_cast<float>(from.real());
  if (operation.step == Step::kErase) operation.box = some_box(from);
  if (operation.step != Step::kAffine && operation.step != Step::kPerspective) return operation;
  const unsigned kind = from.byte();
  operation.sampling = static_cast<kernels::Sampling>(kind & 3);
  operation.fill = {static_cast<std::uint8_t>(kind), 100, 200};
  for (double& value : operation.matrix) value = from.real();
  return operation;
}

// A byte says how often each comes.
std::vector<Operation> some_operations(Choices& from) {
  std::vector<Operation> operations;
  while (!from.is_over() && operations.size() < 20'000) {
    const unsigned often = from.byte();
    const Operation operation = some_operation(from);
    operations.insert(operations.end(), often < 0xF0 ? 1 : (often - 0xEF) * 700, operation);
  }
  return operations;
}

kernels::StoreSpec some_store(Choices& from) {
  const unsigned kind = from.byte(), patches = from.byte();
  kernels::StoreSpec store{.dtype = static_cast<kernels::DType>(kind & 3),
                           .layout = static_cast<kernels::Layout>(kind >> 2 & 1),
                           .channels = static_cast<kernels::ChannelOrder>((kind >> 3) % 3)};
  const auto side = [&](unsigned shift) { return static_cast<int>(patches >> shift & 3); };
  if (kind >= 0xC0) store.patches = kernels::Patches{side(0), side(2), side(4), side(6)};
  return store;
}

bool is_small(kernels::Size size) {
  return size.width >= 0 && size.height >= 0 && std::int64_t{size.width} * size.height <= kMostPixels;
}

void put_canvas(Choices& from, AugmentCase& one) {
  kernels::cuda::Canvas canvas{.mode = static_cast<PadMode>(from.byte() % 5), .fill = {1, 2, 3}};
  canvas.resized = {from.integer(), from.integer()};
  canvas.inner = some_box(from);
  canvas.shown = {from.integer(), from.integer(), one.size.width, one.size.height};
  one.inner = {canvas.inner.width, canvas.inner.height};
  one.canvas = canvas;
}

bool is_walked(const AugmentCase& one) {
  const auto is_near = [](int at, int side) { return at > -kMostWalk && at < side + kMostWalk; };
  if (!one.canvas) return true;
  const kernels::cuda::Canvas& canvas = *one.canvas;
  return is_near(canvas.shown.left, 0) && is_near(canvas.shown.top, 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices from({data, size});
  const kernels::StoreSpec store = some_store(from);
  const unsigned parts = from.byte();
  AugmentCase one;
  one.size.width = from.side();
  one.size.height = from.side();
  one.inner = one.size;
  if ((parts & 1) != 0) put_canvas(from, one);
  for (unsigned erased = parts >> 1 & 3; erased > 0; --erased) {
    const float value = static_cast<float>(from.real());
    one.erased.push_back({some_box(from), {value, 7, value / 2}});
  }
  one.operations = some_operations(from);

  const bool is_valid = is_small(one.inner) && kernels::is_valid(one.size, one.operations);
  if (!is_small(one.size) || !is_small(one.inner)) {  // too slow to make: the planner alone
    kernels::cuda::PicturePlan plan;
    append_picture({.inner = one.inner, .size = one.size, .canvas = one.canvas, .operations = one.operations}, store,
                   plan);
    return 0;
  }
  for (std::int64_t i = 0; i < std::int64_t{3} * one.inner.width * one.inner.height; ++i)
    one.pixels.push_back(static_cast<std::uint8_t>(i * i / 7 + (parts >> 3) * i));

  AugmentBatch batch(store);
  const std::string_view reason = batch.add(one);
  if (!reason.empty()) {
    const bool is_plain = !one.canvas && one.erased.empty() && !store.patches;
    require(!is_plain || !is_valid || size_after(one.size, one.operations) != one.size);
    require(batch.plan().jobs.empty() && batch.plan().steps.empty() && batch.plan().scratch_bytes == 0);
    return 0;
  }
  require(is_valid);
  batch.run_on_host(parts);
  if (!is_walked(one)) return 0;
  const kernels::Target target = parts % 2 == 0 ? kernels::best_target() : kernels::Target::kScalar;
  const std::vector<std::byte> expected = augmented_tensor(one, store, target);
  require(std::ranges::equal(batch.tensor(0), expected));
  return 0;
}
