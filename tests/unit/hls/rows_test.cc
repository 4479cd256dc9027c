// resample_rows and answer as g++ compiles them: rows of pixels become the reference functions' tensors, and the kernel
// that makes nothing touches nothing.
#include <algorithm>
#include <cstring>

#include "hls/decoder/answer.h"
#include "hls/decoder/engine.h"
#include "hls/decoder/resample_rows.h"
#include "hls/decoder/row_slot.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/hls/rig.h"

namespace millrace {
namespace {

struct Rows {
  Pixels pixels;
  File bytes;

  Rows(kernels::Size size, std::uint32_t channels, std::uint32_t seed)
      : pixels(make_pixels(static_cast<std::uint32_t>(size.width), static_cast<std::uint32_t>(size.height), channels,
                           seed)) {
    const auto all = std::as_bytes(std::span(pixels.data));
    bytes.assign(all.begin(), all.end());
  }
  kernels::Size size() const { return {static_cast<int>(pixels.width), static_cast<int>(pixels.height)}; }
  kernels::U8View view() const {
    const int channels = static_cast<int>(pixels.channels);
    return {pixels.data.data(), size().width, size().height, channels, std::ptrdiff_t{size().width} * channels};
  }
};

HlsRequest random_rows_request(const Rows& rows, std::mt19937& random) {
  HlsRequest request{.file = &rows.bytes, .crop = random_box(random, rows.size()), .stored = rows.size()};
  request.resized = {1 + request.crop.width / 10 + below(random, 70), 1 + request.crop.height / 10 + below(random, 70)};
  request.window = below(random, 2) == 0 ? kernels::whole(request.resized) : random_box(random, request.resized);
  request.flip = below(random, 2) == 0 ? kernels::Flip::kNone : kernels::Flip::kHorizontal;
  return request;
}

TEST_CASE("rows of pixels, of one channel or three, become the reference functions' tensors", "[hls][rows]") {
  std::mt19937 random(1);
  for (int round = 0; round < rounds(24); ++round) {
    const hls::BatchRecipe recipe{.store = {.dtype = static_cast<kernels::DType>(round % 4),
                                            .layout = round % 3 == 0 ? kernels::Layout::kNhwc : kernels::Layout::kNchw,
                                            .channels = static_cast<kernels::ChannelOrder>(round / 2 % 3)},
                                  .filter = static_cast<kernels::Filter>(round % 6)};
    HlsRunner runner(recipe, resample_rows, hls::Source::kRows);
    std::vector<Rows> images;
    for (int i = 0; i < 12; ++i)
      images.emplace_back(kernels::Size{1 + below(random, i % 2 == 0 ? 300 : 20), 1 + below(random, 100)},
                          i % 3 == 0 ? 1U : 3U, static_cast<std::uint32_t>(i));
    std::vector<HlsRequest> requests;
    for (const Rows& rows : images) requests.push_back(random_rows_request(rows, random));

    const auto made = runner.run(requests);

    for (std::size_t i = 0; i < made.size(); ++i) {
      CAPTURE(round, i, made[i].refusal, static_cast<int>(made[i].outcome.reason));
      REQUIRE(made[i].is_done());
      REQUIRE((made[i].tensor == expected_tensor(images[i].view(), requests[i], recipe)));
    }
  }
}

TEST_CASE("rows whose bytes are not the picture's are none, for the planner and for the card", "[hls][rows]") {
  const Rows rows({30, 20}, 3, 1);
  HlsRunner runner({}, resample_rows, hls::Source::kRows);
  HlsRequest request = whole_tensor(rows.bytes, {0, 0, 30, 20}, {10, 10});
  request.stored = {30, 20};
  REQUIRE(runner.run({request})[0].is_done());
  request.stored = {30, 21};
  REQUIRE_FALSE(runner.run({request})[0].refusal.empty());
  request.stored = {};
  REQUIRE_FALSE(runner.run({request})[0].refusal.empty());

  request.stored = {30, 20};
  for (const int change : {-1, -600, 1}) {
    runner.meddle = [&](std::span<std::byte> commands) {
      hls::Descriptor image;
      std::memcpy(&image, commands.data() + sizeof(hls::Batch), sizeof image);
      image.source_bytes += static_cast<std::uint32_t>(change);
      std::memcpy(commands.data() + sizeof(hls::Batch), &image, sizeof image);
    };
    REQUIRE(runner.run({request})[0].outcome.reason == hls::Reason::kBadDescriptor);
  }
}

std::unique_ptr<hls::Engine<hls::RowSlot>> rows_engine;

TEST_CASE("no FIFO of a resampling kernel overflows or is read when empty", "[hls][rows][fifo]") {
  rows_engine = std::make_unique<hls::Engine<hls::RowSlot>>();
  HlsRunner runner(
      {},
      [](const hls::Burst* commands, const hls::Burst* encoded, hls::Burst* tensors, hls::Burst* completions,
         std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d, std::uint32_t phase) {
        rows_engine->run({{commands, a}, {encoded, b}, {tensors, c}, {completions, d}}, phase);
      },
      hls::Source::kRows);
  std::mt19937 random(2);
  const Rows rows({200, 90}, 3, 1);
  std::vector<HlsRequest> requests;
  for (int i = 0; i < 40; ++i) requests.push_back(random_rows_request(rows, random));

  runner.run(requests);

  for (int i = 0; i < hls::kLanes * hls::kSlots; ++i) {
    rows_engine->slot(i).each_fifo([&](const char* name, const auto& fifo) {
      CAPTURE(i, name);
      REQUIRE(fifo.overflows() == 0);
      REQUIRE(fifo.underflows() == 0);
      REQUIRE(fifo.high_water() > 0);
    });
  }
  rows_engine.reset();
}

TEST_CASE("the kernel that makes nothing completes everything and touches nothing", "[hls][answer]") {
  const File file = make_jpeg({.pixels = make_pixels(60, 50, 3, 1)});
  HlsRunner runner({}, answer);
  const std::vector<HlsRequest> requests(21, whole_tensor(file, {0, 0, 60, 50}, {9, 7}));
  for (const HlsImage& image : runner.run(requests)) {
    REQUIRE(image.is_done());
    REQUIRE(std::ranges::all_of(image.tensor, [](std::byte byte) { return byte == std::byte{0xA5}; }));
  }
  // Whatever the descriptors say.
  runner.meddle = [](std::span<std::byte> commands) {
    for (std::size_t i = 0; i < 21; ++i)
      std::fill_n(commands.begin() + static_cast<std::ptrdiff_t>(sizeof(hls::Batch) + 64 * i + 4), 60, std::byte{0xFF});
  };
  for (const HlsImage& image : runner.run(requests)) REQUIRE(image.is_done());
}

}  // namespace
}  // namespace millrace
