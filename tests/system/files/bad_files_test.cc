// Files that are no images, or not whole, or too large: errors of their sample, with path and reason; the rest of the
// batch intact.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/describe.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

std::vector<std::byte> good_jpeg(std::uint32_t seed) {
  return make_jpeg({.pixels = make_pixels(90, 70, 3, seed)});
}

// A PNG whose header claims `width` x `height`; the checksum of the header is right, so only the size is wrong.
std::vector<std::byte> claiming_png(std::uint32_t width, std::uint32_t height) {
  std::vector<std::byte> png = make_png({.pixels = make_pixels(16, 16, 3, 1)});
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) png[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
  };
  put(16, width);
  put(20, height);
  std::uint32_t crc = 0xFFFFFFFF;  // PNG, clause 5.5: over the chunk's type and data
  for (std::size_t i = 12; i < 29; ++i) {
    crc ^= static_cast<std::uint32_t>(png[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  put(29, ~crc);
  return png;
}

// A JPEG whose frame header claims 60000 x 60000.
std::vector<std::byte> claiming_jpeg() {
  std::vector<std::byte> jpeg = good_jpeg(1);
  const std::byte marker[] = {std::byte{0xFF}, std::byte{0xC0}};
  const auto frame = std::search(jpeg.begin(), jpeg.end(), std::begin(marker), std::end(marker));
  for (std::ptrdiff_t at : {5, 7}) {
    frame[at] = std::byte{60000 >> 8};
    frame[at + 1] = std::byte{60000 & 0xFF};
  }
  return jpeg;
}

struct BadFile {
  std::string name;
  std::vector<std::byte> bytes;
};

std::vector<std::byte> text_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<BadFile> bad_files() {
  const auto whole = make_jpeg({.pixels = make_pixels(200, 160, 3, 3)});
  const auto png = make_png({.pixels = make_pixels(80, 60, 3, 4)});
  std::vector<std::byte> corrupt_png = png;
  for (std::size_t i = png.size() / 2; i < png.size() / 2 + 8; ++i) corrupt_png[i] ^= std::byte{0x5A};
  return {{"zero_bytes.jpg", {}},
          {"not_an_image.jpg", text_bytes("<html>no picture here</html>")},
          {"cut_in_the_header.jpg", {whole.begin(), whole.begin() + 40}},
          {"cut_in_the_data.jpg", {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / 2)}},
          {"cut.png", {png.begin(), png.begin() + static_cast<std::ptrdiff_t>(png.size() / 2)}},
          {"corrupt.png", corrupt_png},
          {"gigantic.jpg", claiming_jpeg()},
          {"gigantic.png", claiming_png(60000, 60000)}};
}

// Good and bad files in turns, and a folder where a picture should be.
struct BadFilesMill {
  BadFilesMill()
      : daemon({.roots = {folder.path()}}),
        session(need(daemon.connect().open_session({.slots = 2, .batch = 32, .recipe = Recipe::train(40)}))) {
    for (const BadFile& file : bad_files()) {
      add_good();
      bad.push_back(paths.size());
      paths.push_back(folder / file.name);
      write_file(paths.back(), file.bytes);
    }
    add_good();
  }
  void add_good() {
    const auto number = static_cast<std::uint32_t>(paths.size());
    paths.push_back(folder / ("good_" + std::to_string(number) + ".jpg"));
    write_file(paths.back(), good_jpeg(number));
  }
  bool is_bad(std::size_t index) const { return std::find(bad.begin(), bad.end(), index) != bad.end(); }
  BatchRequest request(OnError on_error) const {
    BatchRequest request{.seed = 1, .on_error = on_error};
    for (std::size_t i = 0; i < paths.size(); ++i) request.samples.push_back({.source = Path{paths[i]}, .id = i});
    return request;
  }
  Batch make(BatchRequest request) { return need(session.wait(need(session.submit(std::move(request))))); }
  // The pixels of one good file, made alone.
  std::vector<std::byte> alone(std::size_t index) {
    const Batch batch = make({.samples = {{.source = Path{paths[index]}, .id = index}}, .seed = 1});
    return {batch.tensor.data().begin(), batch.tensor.data().end()};
  }

  TempFolder folder;
  std::vector<std::string> paths;
  std::vector<std::size_t> bad;
  Daemon daemon;
  Session session;
};

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

TEST_CASE("each bad file is an error with its path and a reason", "[system]") {
  BadFilesMill mill;

  const Batch batch = mill.make(mill.request(OnError::kSkip));

  REQUIRE_FALSE(batch.failure);
  REQUIRE(batch.errors.size() == mill.bad.size());
  for (std::size_t i = 0; i < mill.bad.size(); ++i) {
    const auto found = std::find_if(batch.errors.begin(), batch.errors.end(),
                                    [&](const SampleError& error) { return error.index == mill.bad[i]; });
    CAPTURE(mill.paths[mill.bad[i]]);
    REQUIRE(found != batch.errors.end());
    REQUIRE(found->source == mill.paths[mill.bad[i]]);
    REQUIRE(found->sample == mill.bad[i]);
    REQUIRE(found->error.code == Code::kInvalid);
    REQUIRE(found->error.message.size() > 8);
  }
}

TEST_CASE("a gigantic file is refused by its header, with its size and the limit", "[system]") {
  BadFilesMill mill;

  const Batch batch = mill.make(mill.request(OnError::kSkip));

  std::size_t gigantic = 0;
  for (const SampleError& error : batch.errors) {
    if (error.source.find("gigantic") == std::string::npos) continue;
    ++gigantic;
    REQUIRE_THAT(error.error.message, Catch::Contains("60000") && Catch::Contains("limits."));
  }
  REQUIRE(gigantic == 2);
  REQUIRE(mill.daemon.metric("millrace_samples_in_flight") == 0);
}

TEST_CASE("skip leaves the bad ones out and keeps the others' pixels and order", "[system]") {
  BadFilesMill mill;

  const Batch batch = mill.make(mill.request(OnError::kSkip));

  REQUIRE(batch.tensor.samples() == mill.paths.size() - mill.bad.size());
  std::size_t at = 0;
  for (std::size_t index = 0; index < mill.paths.size(); ++index) {
    if (mill.is_bad(index)) continue;
    REQUIRE(batch.tensor.sample(at).index == index);
    REQUIRE(same_bytes(batch.tensor.pixels(at), mill.alone(index)));
    ++at;
  }
}

TEST_CASE("zero keeps their places as zero bytes and marks them", "[system]") {
  BadFilesMill mill;

  const Batch batch = mill.make(mill.request(OnError::kZero));

  REQUIRE(batch.tensor.samples() == mill.paths.size());
  for (std::size_t index = 0; index < mill.paths.size(); ++index) {
    const SampleInfo info = batch.tensor.sample(index);
    const auto pixels = batch.tensor.pixels(index);
    REQUIRE(info.zeroed == mill.is_bad(index));
    REQUIRE(info.good() != mill.is_bad(index));
    const bool all_zero =
        std::all_of(pixels.begin(), pixels.end(), [](std::byte byte) { return byte == std::byte{0}; });
    REQUIRE(all_zero == mill.is_bad(index));
  }
}

TEST_CASE("substitute puts the good one before in their places", "[system]") {
  BadFilesMill mill;

  const Batch batch = mill.make(mill.request(OnError::kSubstitute));

  REQUIRE(batch.tensor.samples() == mill.paths.size());
  for (const std::size_t index : mill.bad) {
    const SampleInfo info = batch.tensor.sample(index);
    REQUIRE(info.substituted);
    REQUIRE(info.id == index - 1);
    REQUIRE(same_bytes(batch.tensor.pixels(index), batch.tensor.pixels(index - 1)));
  }
}

TEST_CASE("fail fails the batch, names the first bad file, and the session goes on", "[system]") {
  BadFilesMill mill;

  const Batch batch = mill.make(mill.request(OnError::kFail));

  REQUIRE(batch.failure);
  REQUIRE(batch.failure->code == Code::kInvalid);
  REQUIRE_THAT(batch.failure->message, Catch::Contains(mill.paths[mill.bad.front()]));
  REQUIRE(batch.tensor.empty());
  REQUIRE_FALSE(mill.make(mill.request(OnError::kSkip)).failure);
}

TEST_CASE("a batch of bad files only is empty, not lost", "[system]") {
  BadFilesMill mill;
  BatchRequest request{.on_error = OnError::kSkip};
  for (const std::size_t index : mill.bad) request.samples.push_back({.source = Path{mill.paths[index]}});

  const Batch batch = mill.make(std::move(request));

  REQUIRE_FALSE(batch.failure);
  REQUIRE(batch.tensor.empty());
  REQUIRE(batch.errors.size() == mill.bad.size());
}

TEST_CASE("bad bytes in the message and in the ring are errors of their sample too", "[system]") {
  BadFilesMill mill;
  const auto good = good_jpeg(1);
  const auto bad = text_bytes("neither JPEG nor anything else");
  InputRing ring = need(mill.session.open_ring(64_KiB));
  const RingRoom room = need(ring.allocate(bad.size()));
  std::copy(bad.begin(), bad.end(), room.bytes().begin());

  const Batch batch = mill.make(
      {.samples = {{.source = Encoded{good}}, {.source = Encoded{bad}}, {.source = room}}, .on_error = OnError::kSkip});

  REQUIRE_FALSE(batch.failure);
  REQUIRE(batch.tensor.samples() == 1);
  REQUIRE(batch.errors.size() == 2);
}

TEST_CASE("a missing file, a folder and a pipe are errors of their sample, at once", "[system]") {
  BadFilesMill mill;
  REQUIRE(mkfifo((mill.folder / "pipe.jpg").c_str(), 0644) == 0);
  const BatchRequest request{.samples = {{.source = Path{mill.paths[0]}},
                                         {.source = Path{mill.folder / "missing.jpg"}},
                                         {.source = Path{mill.folder.path()}},
                                         {.source = Path{mill.folder / "pipe.jpg"}}},
                             .on_error = OnError::kSkip};

  const Batch batch = mill.make(request);

  REQUIRE_FALSE(batch.failure);
  REQUIRE(batch.tensor.samples() == 1);
  REQUIRE(batch.errors.size() == 3);
  for (const SampleError& error : batch.errors) {
    if (error.index == 1) REQUIRE(error.error.code == Code::kNotFound);
  }
}

TEST_CASE("every file of the collection of damaged JPEGs gives pixels or an error, never a lost batch", "[system]") {
  const auto collection = test_data("bad-jpeg");
  if (!collection) return;
  const Daemon daemon({.roots = {*collection}});
  Session session = need(daemon.connect().open_session({.slots = 2, .batch = 16, .recipe = Recipe::train(64)}));
  const Dataset dataset = need(session.open_dataset(*collection));

  Epoch epoch = session.epoch(dataset, {.on_error = OnError::kSkip});
  std::uint64_t good = 0, bad = 0;
  while (const std::optional<Batch> batch = need(epoch.next())) {
    REQUIRE_FALSE(batch->failure);
    good += batch->tensor.samples();
    bad += batch->errors.size();
    for (const SampleError& error : batch->errors) {
      REQUIRE_THAT(error.source, Catch::StartsWith(*collection));
      REQUIRE_FALSE(error.error.message.empty());
    }
  }

  REQUIRE(good + bad == dataset.samples());
  REQUIRE(bad > 0);
}

}  // namespace
}  // namespace millrace
