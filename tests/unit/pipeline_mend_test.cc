#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <cstring>

#include "daemon/memory/host_arena.h"
#include "daemon/pipeline/mend.h"
#include "proto/shm/segment_layout.h"

namespace millrace {
namespace {

constexpr Bytes kSlotBytes = 4096_B;
constexpr std::uint64_t kSlotOffset = shm::slot_offset(1, kSlotBytes, 0);

// A batch of `count` 4x2 grey images, sample i full of bytes i + 1, whose `bad` samples could not be decoded.
struct Fixture {
  explicit Fixture(OnError on_error, std::vector<std::uint32_t> bad, std::uint32_t count = 4,
                   Packing packing = Packing::kOneSize) {
    Recipe recipe;
    recipe.channels = Channels::kGrey;
    recipe.resize = ExactSize{{4, 2}};
    recipe.packing = packing;
    batch.request.recipe = std::make_shared<Recipe>(recipe);
    batch.request.on_error = on_error;
    batch.arena = arena;
    batch.lease = SlotLease{SlotIndex{0}, Generation{7}, memory, kSlotOffset};
    batch.samples.resize(count);
    if (packing == Packing::kOneSize) batch.one_size = Size{4, 2};
    for (std::uint32_t i = 0; i < count; ++i) add(i, packing);
    for (const std::uint32_t i : bad) batch.samples[i].error = Error{Code::kInvalid, "broken"};
  }

  void add(std::uint32_t i, Packing packing) {
    batch.request.samples.push_back(
        SampleRequest{.id = SampleId{100 + i}, .label = i, .source = PathSource{"/x/" + std::to_string(i)}});
    SampleRun& sample = batch.samples[i];
    sample.geometry.window = Box{0, 0, 4, 2};
    sample.bytes = {8};
    sample.offset = packing == Packing::kOneSize ? i * 8 : i * kPackedAlignment;
    sample.laid_out = true;
    std::memset(memory.data() + sample.offset, static_cast<int>(i) + 1, 8);
    batch.tensor = Bytes{sample.offset + 8};
  }

  // Carries out the repairs in order and writes the records, as the pipeline does.
  void apply(const std::vector<Repair>& repairs) {
    bool settled = false;
    arena->settle(SlotIndex{0}, repairs, [&](const Result<void>& result) { settled = result.has_value(); });
    while (!settled) control.run_one();
    const std::vector<std::string> names{"cpu"};
    write_records(batch, names);
  }

  std::vector<int> pixels() const {
    std::vector<int> first_bytes;
    for (std::size_t i = 0; i < batch.order.size(); ++i) {
      const shm::SampleRecord found = record(i);
      first_bytes.push_back(found.pixels_bytes == 0 ? -1 : static_cast<int>(memory[found.pixels_offset - kSlotOffset]));
    }
    return first_bytes;
  }
  std::vector<std::uint64_t> ids() const {
    std::vector<std::uint64_t> found;
    for (std::size_t i = 0; i < batch.order.size(); ++i) found.push_back(record(i).id);
    return found;
  }
  shm::SampleRecord record(std::size_t i) const {
    shm::SampleRecord found;
    const std::uint64_t offset = describe_tensor(batch).records_offset - kSlotOffset + i * sizeof found;
    std::memcpy(&found, memory.data() + offset, sizeof found);
    return found;
  }

  boost::asio::io_context control{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{control.get_executor()};
  Copier copier{control};
  SegmentBudget budget{1_MiB};
  std::shared_ptr<Segment> segment = *Segment::create(shm::segment_bytes(1, kSlotBytes), budget);
  std::shared_ptr<Arena> arena = std::make_shared<HostArena>(segment, 1, kSlotBytes, copier);
  MutableByteView memory{segment->data() + kSlotOffset, kSlotBytes.count};
  BatchRun batch;
};

TEST_CASE("a batch without bad samples needs no mending", "[pipeline]") {
  Fixture fixture(OnError::kFail, {});

  const auto steps = mend(fixture.batch);
  fixture.apply(*steps);

  REQUIRE(steps->empty());
  REQUIRE(fixture.pixels() == std::vector{1, 2, 3, 4});
  REQUIRE(describe_tensor(fixture.batch).shape == std::vector<std::uint64_t>{4, 1, 2, 4});
  REQUIRE(describe_tensor(fixture.batch).strides == std::vector<std::uint64_t>{8, 8, 4, 1});
}

TEST_CASE("on_error fail names the first bad sample and its reason", "[pipeline]") {
  Fixture fixture(OnError::kFail, {1, 3});

  const auto steps = mend(fixture.batch);

  REQUIRE_FALSE(steps.has_value());
  REQUIRE(steps.error().code == Code::kInvalid);
  REQUIRE_THAT(steps.error().message, Catch::Contains("sample 1 (/x/1): broken"));
}

TEST_CASE("the lowest-numbered bad sample is known when all before it are made", "[pipeline]") {
  BatchRun batch;
  batch.samples.resize(4);
  const auto finish = [&](std::uint32_t index, bool good) {
    if (!good) batch.samples[index].error = Error{Code::kInvalid, "broken"};
    batch.samples[index].done = true;
    return batch.first_bad_is_known();
  };

  REQUIRE_FALSE(batch.first_bad_is_known());
  REQUIRE_FALSE(finish(3, false));
  REQUIRE_FALSE(finish(0, true));
  batch.samples[1].error = Error{Code::kUnavailable, "to be tried elsewhere"};
  REQUIRE_FALSE(batch.first_bad_is_known());
  batch.samples[1].error.reset();
  REQUIRE_FALSE(finish(2, false));
  REQUIRE(finish(1, true));
  REQUIRE(batch.made_in_order == 2);
}

TEST_CASE("no bad sample is known in a batch without any", "[pipeline]") {
  BatchRun batch;
  batch.samples.resize(2);
  for (SampleRun& sample : batch.samples) sample.done = true;

  REQUIRE_FALSE(batch.first_bad_is_known());
}

TEST_CASE("on_error skip closes the gaps and keeps the order", "[pipeline]") {
  Fixture fixture(OnError::kSkip, {0, 2});

  fixture.apply(*mend(fixture.batch));

  REQUIRE(fixture.pixels() == std::vector{2, 4});
  REQUIRE(fixture.ids() == std::vector<std::uint64_t>{101, 103});
  REQUIRE(describe_tensor(fixture.batch).shape[0] == 2);
  REQUIRE(describe_tensor(fixture.batch).bytes == Bytes{16});
  REQUIRE(fixture.record(1).index == 3);
}

TEST_CASE("on_error skip closes the gaps of a packed batch at packed alignment", "[pipeline]") {
  Fixture fixture(OnError::kSkip, {1}, 4, Packing::kPacked);

  fixture.apply(*mend(fixture.batch));

  REQUIRE(fixture.pixels() == std::vector{1, 3, 4});
  REQUIRE(fixture.record(1).pixels_offset == kSlotOffset + kPackedAlignment);
}

TEST_CASE("a packed batch of patches has an axis for them and no gaps, mended or not", "[pipeline]") {
  Fixture fixture(OnError::kSkip, {1}, 4, Packing::kPacked);
  Recipe recipe = *fixture.batch.request.recipe;
  recipe.patches = Patches{.size = {2, 1}, .temporal = 2};
  fixture.batch.request.recipe = std::make_shared<Recipe>(recipe);
  for (std::uint32_t i = 0; i < 4; ++i) {  // images of four patches of four bytes, one after the other
    fixture.batch.samples[i].bytes = {16};
    fixture.batch.samples[i].offset = 16 * i;
    std::memset(fixture.memory.data() + 16 * i, static_cast<int>(i) + 1, 16);
  }

  fixture.apply(*mend(fixture.batch));

  REQUIRE(fixture.pixels() == std::vector{1, 3, 4});
  REQUIRE(fixture.record(2).pixels_offset == kSlotOffset + 32);
  REQUIRE(describe_tensor(fixture.batch).shape == std::vector<std::uint64_t>{12, 1, 2, 1, 2});
  REQUIRE(describe_tensor(fixture.batch).strides == std::vector<std::uint64_t>{4, 4, 2, 2, 1});
}

TEST_CASE("a packed tensor is one axis of elements, whatever their type", "[pipeline]") {
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    Fixture fixture(OnError::kFail, {}, 3, Packing::kPacked);
    Recipe recipe = *fixture.batch.request.recipe;
    recipe.dtype = dtype;
    fixture.batch.request.recipe = std::make_shared<Recipe>(recipe);

    const SealedTensor tensor = describe_tensor(fixture.batch);

    const std::uint64_t element = dtype_bytes(dtype).count;
    REQUIRE(tensor.bytes == Bytes{2 * kPackedAlignment + 8});
    REQUIRE(tensor.shape == std::vector{tensor.bytes.count / element});
    REQUIRE(tensor.strides == std::vector{element});
  }
}

TEST_CASE("on_error skip with nothing left leaves no tensor", "[pipeline]") {
  Fixture fixture(OnError::kSkip, {0, 1, 2, 3});

  REQUIRE(mend(fixture.batch).has_value());
  REQUIRE(fixture.batch.order.empty());
}

TEST_CASE("on_error zero clears the pixels and says so in the record", "[pipeline]") {
  Fixture fixture(OnError::kZero, {2});

  fixture.apply(*mend(fixture.batch));

  REQUIRE(fixture.pixels() == std::vector{1, 2, 0, 4});
  REQUIRE(fixture.record(2).flags == shm::kZeroed);
  REQUIRE(fixture.record(2).status == static_cast<std::uint16_t>(Code::kInvalid));
  REQUIRE(fixture.record(2).id == 102);
}

TEST_CASE("on_error substitute takes the nearest good sample before, else after", "[pipeline]") {
  Fixture fixture(OnError::kSubstitute, {0, 3});

  fixture.apply(*mend(fixture.batch));

  REQUIRE(fixture.pixels() == std::vector{2, 2, 3, 3});
  REQUIRE(fixture.ids() == std::vector<std::uint64_t>{101, 101, 102, 102});
  REQUIRE(fixture.record(0).flags == shm::kSubstituted);
  REQUIRE(fixture.record(0).status == static_cast<std::uint16_t>(Code::kInvalid));
  REQUIRE(fixture.record(1).flags == 0);
}

TEST_CASE("on_error substitute fails when no sample is good", "[pipeline]") {
  Fixture fixture(OnError::kSubstitute, {0, 1, 2, 3});

  const auto steps = mend(fixture.batch);

  REQUIRE_FALSE(steps.has_value());
  REQUIRE_THAT(steps.error().message,
               Catch::Contains("sample 0 (/x/0): broken") && Catch::Contains("none can stand in"));
  REQUIRE_THAT(steps.error().message, !Catch::Contains("is fail"));
}

TEST_CASE("under the guard a batch without a good sample fails, whatever becomes of bad ones", "[pipeline]") {
  const auto on_error = GENERATE(OnError::kSkip, OnError::kSubstitute);
  const auto packing = GENERATE(Packing::kOneSize, Packing::kPacked);
  Fixture none(on_error, {0, 1, 2, 3}, 4, packing);
  Fixture one(on_error, {0, 1, 3}, 4, packing);
  none.batch.request.guard = one.batch.request.guard = Guard::kOn;

  const auto steps = mend(none.batch);

  REQUIRE_THAT(steps.error().message,
               Catch::Contains("4 of the batch's 4 samples are bad") && Catch::Contains("/x/0: broken"));
  REQUIRE(mend(one.batch).has_value());
}

}  // namespace
}  // namespace millrace
