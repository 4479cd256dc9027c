// decode_packed as g++ compiles it: packed images become the tensors of the files that were packed; damaged ones what the
// CPU's unpackers make of them, or nothing.
#include <algorithm>
#include <cstring>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "daemon/backend/cpu/making/pack_jpeg.h"
#include "hls/decoder/engine.h"
#include "hls/decoder/packed/decode_packed.h"
#include "hls/decoder/packed/packed_slot.h"
#include "kernels/packed/layout.h"
#include "kernels/packed/shapes.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/hls/rig.h"
#include "tests/unit/kernels/packed/packed_rig.h"

namespace millrace {
namespace {

namespace packed = kernels::packed;
using hls::Reason;

// As the cache has it made; nullopt: none of which it is.
std::optional<File> pack_file(const File& file, kernels::Size size) {
  static kernels::jpeg::Decoder decoder;
  static packed::Encoder encoder;
  DecodingInLane libraries;
  const SourceInfo info{ImageFormat::kJpeg,
                        {static_cast<std::uint32_t>(size.width), static_cast<std::uint32_t>(size.height)}};
  const auto made =
      pack_jpeg(file, info, {}, 0, decoder, encoder, Clock::now() + std::chrono::minutes(10), libraries, 0);
  if (!made) return std::nullopt;
  const auto bytes = std::as_bytes(std::span(*made));
  return File(bytes.begin(), bytes.end());
}

HlsRequest random_packed_request(const File& bytes, kernels::Size size, std::mt19937& random) {
  HlsRequest request{.file = &bytes, .crop = random_box(random, size)};
  request.resized = {1 + request.crop.width / 10 + below(random, 70), 1 + request.crop.height / 10 + below(random, 70)};
  request.window = below(random, 2) == 0 ? kernels::whole(request.resized) : random_box(random, request.resized);
  request.flip = below(random, 2) == 0 ? kernels::Flip::kNone : kernels::Flip::kHorizontal;
  return request;
}

// Each file packed; all of the tensors are those of the files.
void check_packed(HlsRunner& runner, const hls::BatchRecipe& recipe,
                  const std::vector<std::pair<const File*, kernels::Size>>& files, std::mt19937& random) {
  std::vector<File> images;
  for (const auto& [file, size] : files) images.push_back(pack_file(*file, size).value());
  std::vector<HlsRequest> requests;
  for (std::size_t i = 0; i < files.size(); ++i)
    requests.push_back(random_packed_request(images[i], files[i].second, random));
  const auto made = runner.run(requests);
  for (std::size_t i = 0; i < files.size(); ++i) {
    CAPTURE(i, made[i].refusal, static_cast<int>(made[i].outcome.reason));
    REQUIRE(made[i].is_done());
    PixelBuffer buffer;
    const auto pixels =
        decode_jpeg(request_for(*files[i].first, files[i].second, kernels::whole(files[i].second)), buffer);
    REQUIRE(pixels);
    REQUIRE((made[i].tensor == expected_tensor(*pixels, requests[i], recipe)));
  }
}

TEST_CASE("packed photographs become the tensors of their files", "[hls][packed]") {
  const auto folder = test_data("photos");
  if (!folder) return;
  const auto files = files_in(*folder);
  const hls::BatchRecipe recipe{.store = {.dtype = kernels::DType::kBfloat16}};
  HlsRunner runner(recipe, decode_packed, hls::Source::kPacked);
  std::mt19937 random(1);
  const auto every = static_cast<std::size_t>(std::max(1, 12 / rounds(1)));
  for (std::size_t first = 0; first < files.size(); first += 8 * every) {
    std::vector<std::pair<const File*, kernels::Size>> some;
    for (std::size_t i = first; i < std::min(files.size(), first + 8 * every); i += every)
      some.emplace_back(&files[i].second, *jpeg_size(files[i].second));
    CAPTURE(first, files[first].first);
    check_packed(runner, recipe, some, random);
  }
}

TEST_CASE("packed pictures of every sampling, progressive or not, become the tensors of their files", "[hls][packed]") {
  struct Made {
    int h, v;
    std::uint32_t channels;
  };
  constexpr Made kMade[] = {{1, 1, 3}, {2, 1, 3}, {1, 2, 3}, {2, 2, 3}, {1, 1, 1}};
  std::mt19937 random(2);
  const hls::BatchRecipe recipe{.filter = kernels::Filter::kBicubic};
  HlsRunner runner(recipe, decode_packed, hls::Source::kPacked);
  for (int round = 0; round < rounds(6); ++round) {
    std::vector<File> files;
    std::vector<kernels::Size> sizes;
    for (const Made& made : kMade) {
      sizes.push_back({9 + below(random, round % 2 == 0 ? 700 : 30), 9 + below(random, 150)});
      files.push_back(
          make_jpeg({.pixels = make_pixels(static_cast<std::uint32_t>(sizes.back().width),
                                           static_cast<std::uint32_t>(sizes.back().height), made.channels, 5),
                     .quality = 30 + below(random, 70),
                     .h_samp = made.h,
                     .v_samp = made.v,
                     .progressive = round % 3 == 0}));
    }
    std::vector<std::pair<const File*, kernels::Size>> all;
    for (std::size_t i = 0; i < files.size(); ++i) all.emplace_back(&files[i], sizes[i]);
    CAPTURE(round);
    check_packed(runner, recipe, all, random);
  }
}

TEST_CASE("packed random streams, with values of any size, become the tensors of their files", "[hls][packed]") {
  std::mt19937 random(4);
  const hls::BatchRecipe recipe;
  HlsRunner runner(recipe, decode_packed, hls::Source::kPacked);
  int done = 0;
  for (int round = 0; round < rounds(80); ++round) {
    const File file = write_jpeg(draw_jpeg({.kind = JpegDraw::Kind::kPlain}, random)).bytes;
    const auto size = jpeg_size(file);
    if (!size || !pack_file(file, *size)) continue;
    CAPTURE(round);
    check_packed(runner, recipe, {{&file, *size}}, random);
    ++done;
  }
  REQUIRE(done > rounds(20));
}

// What the CPU makes of a packed image whose checksum was not looked at; nullopt: it is for libjpeg-turbo.
std::optional<std::vector<std::byte>> packed_by_cpu(const File& bytes, const HlsRequest& request,
                                                    const hls::BatchRecipe& recipe) {
  std::vector<std::uint8_t> padded(bytes.size() + packed::kPadding);
  std::memcpy(padded.data(), bytes.data(), bytes.size());
  packed::PackedImage image;
  if (!image.read({padded.data(), bytes.size()}, packed::Check::kShape)) return std::nullopt;
  const kernels::Size size = image.header().size;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.width) * size.height * image.header().components);
  const kernels::MutableU8View picture{pixels.data(), size.width, size.height, image.header().components,
                                       std::ptrdiff_t{size.width} * image.header().components};
  static kernels::jpeg::Decoder decoder;
  if (decoder.decode(image, kernels::whole(size), picture, Clock::now() + std::chrono::minutes(5)) !=
      kernels::jpeg::Outcome::kDecoded)
    return std::nullopt;
  return expected_tensor(picture, request, recipe);
}

TEST_CASE("damaged packed images are what the CPU makes of them, or none", "[hls][packed]") {
  std::mt19937 random(5);
  const hls::BatchRecipe recipe;
  HlsRunner runner(recipe, decode_packed, hls::Source::kPacked);
  int done = 0, damaged = 0, refused = 0;
  for (int round = 0; round < rounds(60); ++round) {
    const kernels::Size size{8 + below(random, 400), 8 + below(random, 60)};
    const File file = make_jpeg({.pixels = make_pixels(static_cast<std::uint32_t>(size.width),
                                                       static_cast<std::uint32_t>(size.height), 3, random()),
                                 .h_samp = 1 + below(random, 2),
                                 .v_samp = 1 + below(random, 2)});
    const File good = pack_file(file, size).value();
    std::vector<File> images(10, good);
    for (File& image : images) {
      const std::size_t at = random() % (round % 3 == 0 ? std::min<std::size_t>(image.size(), 500) : image.size());
      for (std::size_t i = at; i < std::min(at + 1 + random() % 4, image.size()); ++i)
        image[i] =
            below(random, 2) == 0 ? static_cast<std::byte>(random()) : image[i] ^ std::byte(1U << below(random, 8));
    }
    std::vector<HlsRequest> requests;
    for (const File& image : images) requests.push_back(random_packed_request(image, size, random));
    const auto made = runner.run(requests);
    for (std::size_t i = 0; i < made.size(); ++i) {
      CAPTURE(round, i, static_cast<int>(made[i].outcome.reason));
      refused += !made[i].refusal.empty();
      if (!made[i].refusal.empty()) continue;
      REQUIRE((made[i].outcome.reason == Reason::kDone || made[i].outcome.reason == Reason::kDamaged ||
               made[i].outcome.reason == Reason::kExtreme));
      damaged += made[i].outcome.reason == Reason::kDamaged;
      if (!made[i].is_done()) continue;
      ++done;
      const auto expected = packed_by_cpu(images[i], requests[i], recipe);
      REQUIRE(expected);
      REQUIRE((made[i].tensor == *expected));
    }
  }
  REQUIRE(done > rounds(20));
  REQUIRE(damaged > rounds(10));
  REQUIRE(refused > 0);
}

TEST_CASE("a head that changes behind the planner's back is found by the card", "[hls][packed]") {
  const kernels::Size size{150, 100};
  const File file = make_jpeg({.pixels = make_pixels(150, 100, 3, 1)});
  const File good = pack_file(file, size).value();
  std::size_t changed = 0;
  for (std::size_t at = 0; at < packed::layout::kChecksum; ++at) {
    File other = good;
    other[at] ^= std::byte{0x81};
    // The planner sees the good one.
    hls::Planner planner(hls::BatchRecipe{});
    std::vector<std::byte> commands(std::size_t{1} << 20);
    planner.begin(commands, 1);
    REQUIRE(planner.add({.file_untrusted = file_bytes(good),
                         .crop = {0, 0, 150, 100},
                         .resized = {30, 20},
                         .window = {0, 0, 30, 20},
                         .kind = hls::Source::kPacked}) == "");
    planner.finish();
    GuardedMemory kept(planner.command_bytes()), encoded(other.size() + hls::kReadAhead), tensors(30 * 20 * 3),
        completions(16);
    std::memcpy(kept.bytes().data(), commands.data(), kept.size());
    std::memcpy(encoded.bytes().data(), other.data(), other.size());
    decode_packed(kept.words(), encoded.words(), tensors.words(), completions.words(), kept.size(), encoded.size(),
                  tensors.size(), completions.size(), 3);
    REQUIRE((kept.is_intact() && encoded.is_intact() && tensors.is_intact() && completions.is_intact()));
    std::vector<hls::ImageOutcome> outcome(1);
    REQUIRE(hls::read_completions(completions.bytes(), 3, outcome) == "");
    CAPTURE(at);
    REQUIRE(outcome[0].reason == Reason::kDamaged);
    ++changed;
  }
  REQUIRE(changed == 32);
}

TEST_CASE("the card's shapes are those of the host", "[hls][packed]") {
  for (unsigned number = 0; number < 256; ++number) {
    const packed::Shape& host = packed::kShapes[number];
    const hls::PackedShape& card = hls::packed_shape(static_cast<std::uint8_t>(number));
    CAPTURE(number);
    REQUIRE(card.bitmap_bytes == host.bitmap_bytes);
    REQUIRE(card.wide == host.nibbles);
    REQUIRE(card.aligned == (host.align != 0));
    REQUIRE(card.raw == (host.raw != 0));
    if (card.raw) continue;
    REQUIRE(card.widths == host.widths);
    REQUIRE(card.starts == host.starts);
  }
  STATIC_REQUIRE(hls::GroupMemory::kMostBytes == packed::layout::kMostGroupBytes);
  STATIC_REQUIRE(hls::kPackedHead == packed::layout::kHeadBytes);
  STATIC_REQUIRE(hls::kLeastPackedStart == packed::layout::kLeastStart);
}

std::unique_ptr<hls::Engine<hls::PackedSlot>> packed_engine;

TEST_CASE("no FIFO of an unpacking decoder overflows or is read when empty", "[hls][packed][fifo]") {
  packed_engine = std::make_unique<hls::Engine<hls::PackedSlot>>();
  HlsRunner runner(
      {},
      [](const hls::Burst* commands, const hls::Burst* encoded, hls::Burst* tensors, hls::Burst* completions,
         std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d, std::uint32_t phase) {
        packed_engine->run({{commands, a}, {encoded, b}, {tensors, c}, {completions, d}}, phase);
      },
      hls::Source::kPacked);
  std::mt19937 random(7);
  std::vector<File> images;
  for (int i = 0; i < 24; ++i) {
    const File file = make_jpeg({.pixels = make_pixels(300, 120, 3, 1), .h_samp = 1 + i % 2, .v_samp = 1 + i / 2 % 2});
    images.push_back(pack_file(file, {300, 120}).value());
    if (i % 3 == 1) images.back()[random() % images.back().size()] ^= std::byte{4};
  }
  std::vector<HlsRequest> requests;
  for (const File& image : images) requests.push_back(random_packed_request(image, {300, 120}, random));

  runner.run(requests);

  for (int i = 0; i < hls::kLanes * hls::kSlots; ++i) {
    packed_engine->slot(i).each_fifo([&](const char* name, const auto& fifo) {
      CAPTURE(i, name);
      REQUIRE(fifo.overflows() == 0);
      REQUIRE(fifo.underflows() == 0);
      REQUIRE(fifo.high_water() > 0);
    });
  }
  packed_engine.reset();
}

}  // namespace
}  // namespace millrace
