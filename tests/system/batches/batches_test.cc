// Batches that a client asks for one by one: sources, outputs, deadlines, cancelling, what becomes of them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "millrace/client.h"
#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

constexpr std::uint32_t kBatchImages = 6;

// A daemon, a folder of pictures and a session with it.
struct BatchMill {
  explicit BatchMill(const Recipe& recipe = Recipe::train(48), std::uint32_t slots = 3, const std::string& fake = {})
      : paths(write_image_folder(folder / "pictures", {.images = kBatchImages, .classes = 2})),
        daemon({.roots = {folder.path()}, .fake = fake}),
        session(need(
            daemon.connect().open_session({.name = "test", .slots = slots, .batch = kBatchImages, .recipe = recipe}))) {
  }

  BatchRequest of_paths() const {
    BatchRequest request{.seed = 11, .epoch = 2};
    for (std::size_t i = 0; i < paths.size(); ++i)
      request.samples.push_back({.source = Path{paths[i]}, .id = 100 + i, .label = static_cast<std::int64_t>(i)});
    return request;
  }
  Batch make(BatchRequest request) { return need(session.wait(need(session.submit(std::move(request))))); }
  TensorView tensor_of(BatchRequest request) {
    Batch batch = make(std::move(request));
    if (batch.failure) throw unexpected(*batch.failure);
    return std::move(batch.tensor);
  }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
  Session session;
};

std::vector<std::byte> bytes_of(const TensorView& tensor) {
  return {tensor.data().begin(), tensor.data().end()};
}

float half_to_float(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const float fraction = static_cast<float>(bits & 1023) / 1024.0F;
  const float size = exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1.0F + fraction, exponent - 15);
  return (bits & 0x8000) != 0 ? -size : size;
}

float bfloat_to_float(std::uint16_t bits) {
  const std::uint32_t word = std::uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

std::vector<float> floats_of(const TensorView& tensor) {
  if (tensor.dtype() == DType::kFloat32) {
    const auto values = need(tensor.as<float>());
    return {values.begin(), values.end()};
  }
  std::vector<float> values;
  for (const std::uint16_t bits : need(tensor.as<std::uint16_t>()))
    values.push_back(tensor.dtype() == DType::kFloat16 ? half_to_float(bits) : bfloat_to_float(bits));
  return values;
}

float largest_difference(const std::vector<float>& values, std::span<const std::uint8_t> pixels) {
  REQUIRE(values.size() == pixels.size());
  float largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    largest = std::max(largest, std::abs(values[i] - static_cast<float>(pixels[i]) / 255.0F));
  return largest;
}

TEST_CASE("a batch of paths comes back in order, with ids, labels and shape", "[system]") {
  BatchMill mill;

  const TensorView tensor = mill.tensor_of(mill.of_paths());

  REQUIRE(std::vector<std::uint64_t>(tensor.shape().begin(), tensor.shape().end()) ==
          std::vector<std::uint64_t>{kBatchImages, 3, 48, 48});
  REQUIRE(tensor.ids() == std::vector<std::uint64_t>{100, 101, 102, 103, 104, 105});
  REQUIRE(tensor.labels() == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  REQUIRE(tensor.valid());
  for (std::size_t i = 0; i < tensor.samples(); ++i) {
    const SampleInfo info = tensor.sample(i);
    REQUIRE(info.good());
    REQUIRE(info.backend == "cpu");
    REQUIRE(info.index == i);
    REQUIRE(info.crop.left >= 0);
    REQUIRE(info.crop.top >= 0);
    REQUIRE(info.crop.left + info.crop.width <= static_cast<std::int32_t>(info.oriented().width));
    REQUIRE(info.crop.top + info.crop.height <= static_cast<std::int32_t>(info.oriented().height));
  }
}

TEST_CASE("the same images make the same pixels as paths, inline bytes, ring bytes and dataset samples", "[system]") {
  BatchMill mill;
  const std::vector<std::byte> expected = bytes_of(mill.tensor_of(mill.of_paths()));

  std::vector<std::vector<std::byte>> files;
  for (const std::string& path : mill.paths) files.push_back(read_file(path));
  BatchRequest of_bytes = mill.of_paths();
  for (std::size_t i = 0; i < files.size(); ++i) of_bytes.samples[i].source = Encoded{files[i]};
  const InputRing ring = need(mill.session.open_ring(1_MiB));
  BatchRequest of_ring = mill.of_paths();
  for (std::size_t i = 0; i < files.size(); ++i) {
    InputRing shared = ring;
    const RingRoom room = need(shared.allocate(files[i].size()));
    std::memcpy(room.bytes().data(), files[i].data(), files[i].size());
    of_ring.samples[i].source = room;
  }
  const Dataset dataset = need(mill.session.open_dataset(mill.folder / "pictures"));
  BatchRequest of_dataset = mill.of_paths();
  for (std::size_t i = 0; i < files.size(); ++i) of_dataset.samples[i].source = DatasetSample{dataset.id(), i};

  REQUIRE(bytes_of(mill.tensor_of(std::move(of_bytes))) == expected);
  REQUIRE(bytes_of(mill.tensor_of(std::move(of_ring))) == expected);
  REQUIRE(bytes_of(mill.tensor_of(std::move(of_dataset))) == expected);
}

TEST_CASE("a sample has the label that it was given, 0 too, else its dataset's own, else -1", "[system]") {
  BatchMill mill;
  const Dataset dataset = need(mill.session.open_dataset(mill.folder / "pictures"));
  BatchRequest request{.recipe = Recipe::train(16)};
  for (const std::uint64_t sample : {0U, 5U}) {
    request.samples.push_back({.source = DatasetSample{dataset.id(), sample}});
    request.samples.push_back({.source = DatasetSample{dataset.id(), sample}, .label = 0});
    request.samples.push_back({.source = DatasetSample{dataset.id(), sample}, .label = -1});
    request.samples.push_back({.source = DatasetSample{dataset.id(), sample}, .label = 77});
  }
  request.samples.push_back({.source = Path{mill.paths[5]}});
  request.samples.push_back({.source = Path{mill.paths[5]}, .label = 0});

  const TensorView tensor = mill.tensor_of(std::move(request));

  REQUIRE(dataset.classes().size() == 2);
  REQUIRE(tensor.labels() == std::vector<std::int64_t>{0, 0, -1, 77, 1, 0, -1, 77, -1, 0});
}

TEST_CASE("every element type holds the same picture", "[system]") {
  struct Case {
    DType dtype;
    float tolerance;  // of a value in [0, 1]: half a unit in the last place
  };
  BatchMill mill;
  const TensorView pixels = mill.tensor_of(mill.of_paths());
  const auto expected = need(pixels.as<std::uint8_t>());

  for (const Case& one :
       {Case{DType::kFloat32, 1e-7F}, Case{DType::kFloat16, 1.0F / 4096}, Case{DType::kBfloat16, 1.0F / 512}}) {
    Session session = need(mill.daemon.connect().open_session({.slot_bytes = 4_MiB}));
    BatchRequest request = mill.of_paths();
    request.recipe = Recipe::train(48);
    request.recipe->dtype = one.dtype;
    const Batch batch = need(session.wait(need(session.submit(std::move(request)))));
    CAPTURE(dtype_name(one.dtype));
    REQUIRE_FALSE(batch.failure);
    REQUIRE(batch.tensor.dtype() == one.dtype);
    REQUIRE(largest_difference(floats_of(batch.tensor), expected) <= one.tolerance);
  }
}

TEST_CASE("layouts and channel orders are permutations of the same pixels", "[system]") {
  BatchMill mill;
  const TensorView planar = mill.tensor_of(mill.of_paths());
  BatchRequest request = mill.of_paths();
  request.recipe = Recipe::train(48);
  request.recipe->layout = Layout::kNhwc;
  request.recipe->channels = Channels::kBgr;

  const TensorView interleaved = mill.tensor_of(std::move(request));

  constexpr std::size_t kArea = 48 * 48;
  const auto expected = planar.data();
  const auto pixels = interleaved.data();
  REQUIRE(pixels.size() == expected.size());
  std::size_t different = 0;
  for (std::size_t image = 0; image < kBatchImages; ++image) {
    for (std::size_t at = 0; at < kArea * 3; ++at) {
      const std::size_t channel = 2 - at % 3;
      different += pixels[image * kArea * 3 + at] == expected[image * kArea * 3 + channel * kArea + at / 3] ? 0 : 1;
    }
  }
  REQUIRE(different == 0);
}

TEST_CASE("a packed batch gives each image its own size", "[system]") {
  Recipe recipe = Recipe::thumbnail(40);
  TempFolder folder;
  const auto paths = write_image_folder(folder.path(), {.images = kBatchImages, .classes = 0});
  const Daemon daemon({.roots = {folder.path()}});
  Session session = need(daemon.connect().open_session({.recipe = recipe, .slot_bytes = 1_MiB}));
  BatchRequest request;
  for (const std::string& path : paths) request.samples.push_back({.source = Path{path}});

  const Batch batch = need(session.wait(need(session.submit(std::move(request)))));

  REQUIRE_FALSE(batch.failure);
  REQUIRE(batch.tensor.samples() == paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const SampleInfo info = batch.tensor.sample(i);
    REQUIRE(std::max(info.size.width, info.size.height) == 40);
    REQUIRE(batch.tensor.pixels(i).size() == std::size_t{info.size.width} * info.size.height * 3);
  }
}

TEST_CASE("patches hold the same pixels as rows do", "[system]") {
  const Recipe rows{.resize = SmartResize{.factor = 28, .min_pixels = 3136, .max_pixels = 40'000},
                    .filter = Filter::kBicubic,
                    .layout = Layout::kNchw,
                    .packing = Packing::kPacked};
  Recipe patches = rows;
  patches.patches = Patches{.size = {14, 14}, .merge = 2, .temporal = 2};
  TempFolder folder;
  const auto paths = write_image_folder(folder.path(), {.images = kBatchImages, .classes = 0});
  const Daemon daemon({.roots = {folder.path()}});
  Session session = need(daemon.connect().open_session({.slots = 2, .recipe = rows, .slot_bytes = 4_MiB}));
  BatchRequest request;
  for (const std::string& path : paths) request.samples.push_back({.source = Path{path}});

  const Batch plain = need(session.wait(need(session.submit(request))));
  request.recipe = patches;
  const Batch cut = need(session.wait(need(session.submit(std::move(request)))));

  REQUIRE(cut.tensor.shape().size() == 5);
  REQUIRE(cut.tensor.shape()[0] * 3 * 2 * 14 * 14 == cut.tensor.data().size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const Size size = cut.tensor.sample(i).size;
    const auto image = plain.tensor.pixels(i), blocks = cut.tensor.pixels(i);
    REQUIRE(size == plain.tensor.sample(i).size);
    REQUIRE(blocks.size() == 2 * image.size());
    for (std::size_t at = 0; at < image.size(); ++at) {
      const std::size_t x = at % size.width, y = at / size.width % size.height, channel = at / size.width / size.height;
      const std::size_t group = y / 28 * (size.width / 28) + x / 28;
      const std::size_t patch = group * 4 + y / 14 % 2 * 2 + x / 14 % 2;
      const std::size_t first_frame = ((patch * 3 + channel) * 2 * 14 + y % 14) * 14 + x % 14;
      different += blocks[first_frame] == image[at] && blocks[first_frame + 14 * 14] == image[at] ? 0 : 1;
    }
  }
  REQUIRE(different == 0);
}

TEST_CASE("an explicit box is what is cut out", "[system]") {
  BatchMill mill;
  BatchRequest request = mill.of_paths();
  request.recipe = Recipe{.resize = ExactSize{{24, 24}}};
  for (Sample& sample : request.samples) sample.box = Box{5, 7, 20, 16};

  const TensorView tensor = mill.tensor_of(std::move(request));

  for (std::size_t i = 0; i < tensor.samples(); ++i) REQUIRE(tensor.sample(i).crop == Box{5, 7, 20, 16});
}

TEST_CASE("every priority is accepted", "[system]") {
  BatchMill mill;
  for (const Priority priority : {Priority::kLow, Priority::kNormal, Priority::kHigh}) {
    BatchRequest request = mill.of_paths();
    request.priority = priority;
    REQUIRE(mill.tensor_of(std::move(request)).samples() == kBatchImages);
  }
}

TEST_CASE("a batch fails when its deadline passes while it waits for a slot", "[system]") {
  BatchMill mill(Recipe::train(48), 1);
  const TensorView held = mill.tensor_of(mill.of_paths());
  BatchRequest request = mill.of_paths();
  request.deadline = std::chrono::milliseconds(30);

  const Batch batch = mill.make(std::move(request));

  REQUIRE(batch.failure);
  CAPTURE(batch.failure->message);
  REQUIRE(batch.failure->code == Code::kDeadline);
  REQUIRE(held.valid());
}

TEST_CASE("a batch fails when its deadline passes while it is made", "[system]") {
  BatchMill mill(Recipe::train(48), 2, "delay_us=60000000");
  BatchRequest request = mill.of_paths();
  request.backend = "fake";
  request.deadline = std::chrono::milliseconds(50);

  const auto ticket = need(mill.session.submit(std::move(request)));
  const Batch batch = need(mill.session.wait(ticket, std::chrono::seconds(30)));  // which does not wait for the backend

  REQUIRE(batch.failure);
  CAPTURE(batch.failure->message);
  REQUIRE(batch.failure->code == Code::kDeadline);
}

TEST_CASE("a cancelled batch ends as cancelled, waiting or under way, and its slot is free again", "[system]") {
  BatchMill mill(Recipe::train(48), 1, "delay_us=3000000");
  BatchRequest slow = mill.of_paths();
  slow.backend = "fake";
  const Ticket running = need(mill.session.submit(std::move(slow)));
  const Ticket waiting = need(mill.session.submit(mill.of_paths()));

  mill.session.cancel(waiting);
  mill.session.cancel(running);

  for (const Ticket ticket : {waiting, running}) {
    const Batch batch = need(mill.session.wait(ticket));
    REQUIRE(batch.failure);
    CAPTURE(batch.failure->message);
    REQUIRE(batch.failure->code == Code::kCancelled);
  }
  REQUIRE(mill.tensor_of(mill.of_paths()).samples() == kBatchImages);
}

TEST_CASE("an unknown backend fails the batch and names what was asked for", "[system]") {
  BatchMill mill;
  BatchRequest request = mill.of_paths();
  request.backend = "abacus";

  const Batch batch = mill.make(std::move(request));

  REQUIRE(batch.failure);
  CAPTURE(batch.failure->message);
  REQUIRE(batch.failure->code == Code::kNotFound);
  REQUIRE_THAT(batch.failure->message, Catch::Contains("abacus"));
}

TEST_CASE("slots come back with their views, and a batch waits for one", "[system]") {
  BatchMill mill(Recipe::train(48), 2);
  std::vector<TensorView> held;
  for (int i = 0; i < 2; ++i) held.push_back(mill.tensor_of(mill.of_paths()));
  const Ticket third = need(mill.session.submit(mill.of_paths()));
  REQUIRE(mill.session.wait(third, std::chrono::milliseconds(50)).error().code == Code::kDeadline);
  REQUIRE(mill.daemon.metric("millrace_slots_free") == 0);

  held.clear();

  REQUIRE_FALSE(need(mill.session.wait(third)).failure);
  REQUIRE(eventually([&] { return mill.daemon.metric("millrace_slots_free") == 2; }));
}

}  // namespace
}  // namespace millrace
