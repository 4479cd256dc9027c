// What every arena does: host memory's, one whose memory no pointer leads to, and a GPU's, on the simulated driver.
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <cstring>
#include <future>
#include <optional>
#include <string>

#include "daemon/backend/cuda/cuda_backend.h"
#include "daemon/memory/host_arena.h"
#include "proto/shm/segment_layout.h"
#include "tests/conformance/bench_of_backend.h"
#include "tests/conformance/device_arena.h"
#include "tests/support/host/segment_budget.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

constexpr Bytes kSlotBytes = 10'000_B;
constexpr std::uint32_t kSlots = 3;
constexpr SlotIndex kSlot{1};

// The test's thread is the control thread, while it waits here.
struct Control {
  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{context.get_executor()};
};

// A memory that tensors can be in, with one session's arena.
class Bench {
 public:
  virtual ~Bench() = default;
  virtual Arena& arena() = 0;
  virtual void fill(Destination to, std::byte value) = 0;  // as a backend that can write this memory

  std::vector<std::byte> read(SlotRange range, SlotIndex slot = kSlot) {
    std::vector<std::byte> bytes(range.bytes.count);
    const HandedOver handed = arena().hand_over();
    const auto offset = arena().tensor_offset(slot) + range.offset;
    REQUIRE(Bytes{offset} + range.bytes <= handed.bytes);
    REQUIRE(::pread(handed.descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
            static_cast<ssize_t>(bytes.size()));
    return bytes;
  }
  // Returns what done() was told.
  Result<void> finalize(std::vector<Repair> repairs, SlotIndex slot = kSlot) {
    std::optional<Result<void>> result;
    arena().finalize(slot, std::move(repairs), [&](Result<void> told) { result = std::move(told); });
    while (!result) control.context.run_one();
    return *result;
  }
  void write(SlotRange range, std::byte value) { fill(arena().destination(kSlot, range), value); }
  void stage(SlotRange range, std::byte value) {
    const Destination staged = arena().stage(kSlot, range);
    std::memset(staged.view().data(), static_cast<int>(value), staged.bytes.count);
  }

  Control control;
};

class HostBench final : public Bench {
 public:
  Arena& arena() override { return arena_; }
  void fill(Destination to, std::byte value) override {
    std::memset(to.view().data(), static_cast<int>(value), to.bytes.count);
  }

 private:
  Copier copier_{control.context};
  SegmentBudget budget_{1_MiB};
  HostArena arena_{*budget_.create(shm::segment_bytes(kSlots, kSlotBytes)), kSlots, kSlotBytes, UserId{}, copier_};
};

class DeviceBench final : public Bench {
 public:
  Arena& arena() override { return arena_; }
  void fill(Destination to, std::byte value) override {
    REQUIRE(to.host == nullptr);
    REQUIRE(to.memory == arena_.memory());
    const std::vector<std::byte> bytes(to.bytes.count, value);
    std::promise<MadeUpDevice::End> end;
    device_.enqueue([&](MadeUpDevice::Engine& engine) { engine.upload(to.offset, bytes); },
                    [&](MadeUpDevice::End how) { end.set_value(how); });
    REQUIRE(end.get_future().get() == MadeUpDevice::End::kDone);
  }

 private:
  MadeUpDevice device_;
  DeviceArena arena_{control.context, device_, kSlots, kSlotBytes};
};

// A GPU's, through the process that owns it. It is read as a client has it: by the descriptor, which is the memory itself here.
class GpuBench final : public Bench {
 public:
  GpuBench() {
    std::optional<Result<MadeArena>> told;
    memory_->make(control.context, {.slots = kSlots, .slot_bytes = kSlotBytes, .most_samples = 1}, nullptr,
                  [&](Result<MadeArena> made) { told = std::move(made); });
    while (!told) control.context.run_one();
    REQUIRE(*told);
    made_ = **std::move(told);
  }
  Arena& arena() override { return *made_.arena; }
  void fill(Destination to, std::byte value) override {
    REQUIRE(to.host == nullptr);
    REQUIRE(to.memory == arena().memory());
    const CudaPlace place = CudaPlace::of(to.offset);
    std::promise<Result<void>> end;
    CudaMemory::Move move{.to = place.offset, .bytes = to.bytes, .uploaded = filled(to.bytes, value)};
    dynamic_cast<CudaMemory&>(*memory_).move(place.memory, {std::move(move)},
                                             [&](Result<void> how) { end.set_value(std::move(how)); });
    REQUIRE(end.get_future().get());
  }

 private:
  static std::vector<std::byte> filled(Bytes bytes, std::byte value) {
    return std::vector<std::byte>(bytes.count, value);
  }
  static std::unique_ptr<Backend> start_gpu() {
    auto gpus = make_cuda_backends(settings_of({}), {});
    REQUIRE(gpus);
    REQUIRE_FALSE(gpus->empty());
    return std::move(gpus->front());
  }

  const std::unique_ptr<Backend> gpu_ = start_gpu();
  TensorMemory* const memory_ = gpu_->memory();
  MadeArena made_;
};

template <class Test>
void for_every_arena(Test test) {
  if (!skips_without_gpu_kernels()) {
    INFO("a GPU's memory");
    GpuBench bench;
    test(bench);
  }
  {
    INFO("host memory");
    HostBench bench;
    test(bench);
  }
  INFO("device memory");
  DeviceBench bench;
  test(bench);
}

std::vector<std::byte> filled(Bytes bytes, int value) {
  return std::vector<std::byte>(bytes.count, std::byte(value));
}

}  // namespace

TEST_CASE("what is written or staged for a slot is in what is handed over, there and nowhere else",
          "[conformance][memory]") {
  for_every_arena([](Bench& bench) {
    bench.write({0, 100_B}, std::byte{1});
    bench.stage({100, 50_B}, std::byte{2});

    REQUIRE(bench.finalize({}));

    REQUIRE(bench.read({0, 100_B}) == filled(100_B, 1));
    REQUIRE(bench.read({100, 50_B}) == filled(50_B, 2));
    REQUIRE(bench.read({150, kSlotBytes - 150_B}) == filled(kSlotBytes - 150_B, 0));
    REQUIRE(bench.read({0, kSlotBytes}, SlotIndex{0}) == filled(kSlotBytes, 0));
    REQUIRE(bench.read({0, kSlotBytes}, SlotIndex{2}) == filled(kSlotBytes, 0));
  });
}

TEST_CASE("repairs are carried out in order, after what was staged, and may overlap", "[conformance][memory]") {
  for_every_arena([](Bench& bench) {
    std::vector<std::byte> expected(100);
    for (std::uint64_t i = 0; i < 100; i += 10) {
      if (i % 20 == 0) bench.write({i, 10_B}, std::byte(i + 1));
      if (i % 20 != 0) bench.stage({i, 10_B}, std::byte(i + 1));
      std::memset(expected.data() + i, static_cast<int>(i + 1), 10);
    }
    std::memmove(expected.data() + 10, expected.data() + 25, 30);
    std::memmove(expected.data() + 50, expected.data() + 10, 30);
    std::memset(expected.data() + 15, 0, 20);

    REQUIRE(bench.finalize({{{10, 30_B}, 25}, {{50, 30_B}, 10}, {{15, 20_B}, std::nullopt}}));

    REQUIRE(bench.read({0, 100_B}) == expected);
  });
}

TEST_CASE("of two ways to make a range the last one counts", "[conformance][memory]") {
  for_every_arena([](Bench& bench) {
    bench.stage({0, 10_B}, std::byte{1});
    bench.write({0, 10_B}, std::byte{2});
    bench.write({10, 10_B}, std::byte{3});
    bench.stage({10, 10_B}, std::byte{4});

    REQUIRE(bench.finalize({}));

    REQUIRE(bench.read({0, 10_B}) == filled(10_B, 2));
    REQUIRE(bench.read({10, 10_B}) == filled(10_B, 4));
  });
}

TEST_CASE("nothing that was in the daemon's memory before reaches a slot by way of staging", "[conformance][memory]") {
  for_every_arena([](Bench& bench) {
    bench.stage({0, 4'000_B}, std::byte{9});
    bench.arena().forget(kSlot);
    if (bench.arena().memory() == kHostMemory) bench.write({0, 4'000_B}, std::byte{0});

    bench.arena().stage(kSlot, {0, 4'000_B});
    REQUIRE(bench.finalize({}));

    REQUIRE(bench.read({0, 4'000_B}) == filled(4'000_B, 0));
  });
}

TEST_CASE("slots are finalized apart from each other, each done exactly once", "[conformance][memory]") {
  for_every_arena([](Bench& bench) {
    std::vector<int> done(kSlots);
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      const Repair zeroes{{0, 100_B}, std::nullopt};
      bench.arena().finalize(SlotIndex{slot}, {zeroes}, [&done, slot](const Result<void>& told) {
        REQUIRE(told);
        ++done[slot];
      });
    }

    for (std::uint32_t i = 0; i < kSlots; ++i) bench.control.context.run_one();
    bench.control.context.poll();

    REQUIRE(done == std::vector<int>(kSlots, 1));
  });
}

TEST_CASE("what was staged for a batch that came to nothing is not brought to the next one's slot",
          "[conformance][memory]") {
  for_every_arena([](Bench& bench) {
    if (bench.arena().memory() == kHostMemory) return;  // nothing is staged there
    bench.stage({0, 10_B}, std::byte{7});

    bench.arena().forget(kSlot);

    REQUIRE(bench.finalize({}));
    REQUIRE(bench.read({0, 10_B}) == filled(10_B, 0));
  });
}

}  // namespace millrace
