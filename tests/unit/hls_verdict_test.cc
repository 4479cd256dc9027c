// The FPGA decoder's verdict on damaged files beside that of the CPU's image maker: what a card makes is what the CPU
// makes, element by element, and a file that the CPU calls damaged is made by neither.
#include <algorithm>

#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/backend/words.h"
#include "daemon/formats/probe.h"
#include "hls/decoder/decode_jpeg.h"
#include "tests/support/random_jpeg.h"
#include "tests/support/restart_damage.h"
#include "tests/support/rounds.h"
#include "tests/support/test_data.h"
#include "tests/support/test_images.h"
#include "tests/unit/hls_rig.h"

namespace millrace {
namespace {

std::optional<EncodedImage> encoded(const File& file) {
  EncodedBytes bytes(file.size());
  std::copy(file.begin(), file.end(), bytes.writable().begin());
  const auto info = probe_image(bytes.view(), SampleLimits{}, UseOrientation::kNo);
  if (!info) return std::nullopt;
  return EncodedImage{std::move(bytes), *info};
}

Box in_words(const kernels::Box& box) {
  return {box.left, box.top, box.width, box.height};
}

// By the way of the CPU's lanes; nullopt: an error.
std::optional<std::vector<std::byte>> made_by_cpu(const HlsRequest& request, const Recipe& recipe,
                                                  ImageWorkspace& workspace) {
  auto image = encoded(*request.file);
  if (!image) return std::nullopt;
  const SampleGeometry geometry{.crop = in_words(request.crop),
                                .resized = {static_cast<std::uint32_t>(request.resized.width),
                                            static_cast<std::uint32_t>(request.resized.height)},
                                .window = in_words(request.window),
                                .flip = request.flip == kernels::Flip::kHorizontal};
  std::vector<std::byte> tensor(image_bytes(recipe, geometry.output()).count);
  const SampleTask task{0, std::move(*image), geometry, in_host_memory(tensor)};
  if (make_image(task, recipe, SampleLimits{}, workspace, Fidelity::kExact).error) return std::nullopt;
  return tensor;
}

bool one_in(std::mt19937& random, int count) {
  return below(random, count) == 0;
}

// Where a file's only scan has its data.
JpegFile located(File bytes) {
  const std::byte sos[] = {std::byte{0xFF}, std::byte{0xDA}};
  const auto at = std::search(bytes.begin(), bytes.end(), std::begin(sos), std::end(sos)) - bytes.begin();
  const std::size_t scan = static_cast<std::size_t>(at) + 2;
  const std::size_t length =
      std::to_integer<std::size_t>(bytes[scan]) << 8 | std::to_integer<std::size_t>(bytes[scan + 1]);
  const std::size_t end = bytes.size() - 2;
  return {.bytes = std::move(bytes), .scan = scan + length, .end = end};
}

// A picture as an encoder writes it, or a stream of any coefficients.
JpegFile draw_file(std::mt19937& random) {
  const auto side = [&] { return 8 + below(random, 150); };
  if (one_in(random, 3)) {
    JpegDraw draw{.width = side(), .height = side()};
    if (one_in(random, 4)) draw.kind = JpegDraw::Kind::kAny;
    if (one_in(random, 4)) draw.range = JpegDraw::Range::kWild;
    return write_jpeg(draw_jpeg(draw, random));
  }
  constexpr int kSampling[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {2, 2}, {4, 1}};
  const auto& sampling = kSampling[below(random, 6)];
  return located(
      make_jpeg({.pixels = make_pixels(static_cast<std::uint32_t>(side()), static_cast<std::uint32_t>(side()),
                                       one_in(random, 6) ? 1 : 3, static_cast<std::uint32_t>(random())),
                 .quality = 10 + below(random, 86),
                 .h_samp = sampling[0],
                 .v_samp = sampling[1],
                 .restart_interval = one_in(random, 2) ? 1 + below(random, 9) : 0,
                 .optimise = one_in(random, 2)}));
}

// Damaged in one way or in two; now and then in none.
File draw_damage(const JpegFile& file, std::mt19937& random) {
  if (one_in(random, 8)) return file.bytes;
  JpegFile damaged = file;
  if (one_in(random, 3)) {
    damaged.bytes = damage_restart(file, static_cast<RestartDamage>(below(random, kRestartDamages)), random);
    if (one_in(random, 2) || damaged.bytes.size() < damaged.scan + 2) return damaged.bytes;
    damaged.end = damaged.bytes.size() - 2;
  }
  return damage(damaged, static_cast<JpegDamage>(below(random, kJpegDamages)), random);
}

// A crop that becomes a tensor, or a window of what it is resized to; nullopt: nothing that the daemon gives to a card.
std::optional<HlsRequest> draw_request(const File& file, std::mt19937& random) {
  const auto image = encoded(file);
  if (!image || image->info.format != ImageFormat::kJpeg || image->info.has.passes || image->info.has.cmyk)
    return std::nullopt;
  const kernels::Size picture{static_cast<int>(image->info.stored.width), static_cast<int>(image->info.stored.height)};
  HlsRequest request{.file = &file, .crop = kernels::whole(picture)};
  if (!one_in(random, 4)) request.crop = random_box(random, picture);
  request.resized = {request.crop.width / 8 + 1 + below(random, 60), request.crop.height / 8 + 1 + below(random, 60)};
  request.window = one_in(random, 2) ? kernels::whole(request.resized) : random_box(random, request.resized);
  request.flip = one_in(random, 2) ? kernels::Flip::kHorizontal : kernels::Flip::kNone;
  return request;
}

struct Tally {
  int mutants = 0, made = 0, refused = 0;  // by the card; by both
};

struct Kind {
  Recipe recipe;
  hls::BatchRecipe ours;

  explicit Kind(const Recipe& of)
      : recipe(of),
        ours{.store = store_spec(of), .filter = resample_spec({{0, 0, 8, 8}, {8, 8}, {0, 0, 8, 8}}, of, 3).filter} {}
};

void check(const Kind& kind, HlsRunner& runner, const std::vector<HlsRequest>& requests, Tally& tally) {
  ImageWorkspace workspace;
  const auto images = runner.run(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto expected = made_by_cpu(requests[i], kind.recipe, workspace);
    ++tally.mutants;
    tally.made += images[i].is_done();
    tally.refused += !expected && !images[i].is_done();
    CAPTURE(i);
    if (!images[i].is_done()) continue;
    REQUIRE(expected);
    REQUIRE((images[i].tensor == *expected));
  }
}

std::vector<Kind> kinds() {
  Recipe plain, nearest, lanczos, grey;
  nearest.filter = Filter::kNearest;
  lanczos.filter = Filter::kLanczos;
  grey.channels = Channels::kGrey;
  grey.layout = Layout::kNhwc;
  grey.filter = Filter::kBicubic;
  return {Kind(plain), Kind(plain.normalised(DType::kFloat16)), Kind(nearest), Kind(lanczos), Kind(grey)};
}

TEST_CASE("what a card makes of damaged files is what the CPU makes, and nothing that it calls damaged",
          "[hls][verdict]") {
  std::mt19937 random(91);
  Tally tally;
  for (const Kind& kind : kinds()) {
    HlsRunner runner(kind.ours, decode_jpeg);
    for (int round = 0; round < rounds(15); ++round) {
      std::vector<File> files;
      for (int i = 0; i < 16; ++i) files.push_back(draw_damage(draw_file(random), random));
      std::vector<HlsRequest> requests;
      for (const File& file : files) {
        if (const auto request = draw_request(file, random)) requests.push_back(*request);
      }
      CAPTURE(round);
      check(kind, runner, requests, tally);
    }
  }
  REQUIRE(tally.made > tally.mutants / 8);
  REQUIRE(tally.refused > tally.mutants / 8);
}

TEST_CASE("what a card makes of damaged photographs is what the CPU makes", "[hls][verdict]") {
  const auto folder = test_data("photos");
  if (!folder) return;
  const auto photographs = files_in(*folder);
  std::mt19937 random(93);
  Tally tally;
  const Kind kind{Recipe{}};
  HlsRunner runner(kind.ours, decode_jpeg);
  for (int round = 0; round < rounds(8); ++round) {
    std::vector<File> files;
    for (int i = 0; i < 8; ++i)
      files.push_back(draw_damage(located(photographs[random() % photographs.size()].second), random));
    std::vector<HlsRequest> requests;
    for (const File& file : files) {
      if (const auto request = draw_request(file, random)) requests.push_back(*request);
    }
    check(kind, runner, requests, tally);
  }
  REQUIRE(tally.made > 0);
}

TEST_CASE("a level beyond 16 bits, bytes after the last block and markers out of turn are not made", "[hls][verdict]") {
  const File good = make_jpeg({.pixels = make_pixels(64, 64, 3, 5), .restart_interval = 2});
  const JpegFile file = located(good);
  HlsRunner runner({}, decode_jpeg);
  const auto reason = [&](const File& bytes) {
    return runner.run({whole_tensor(bytes, {0, 0, 16, 16}, {16, 16})})[0].outcome.reason;
  };
  const auto with = [&](std::size_t at, std::vector<int> inserted) {
    File other = good;
    for (auto byte = inserted.rbegin(); byte != inserted.rend(); ++byte)
      other.insert(other.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::byte>(*byte));
    return reason(other);
  };
  REQUIRE(reason(good) == hls::Reason::kDone);
  REQUIRE(with(file.end, {0x55}) == hls::Reason::kDamaged);
  REQUIRE(with(file.end, {0xFF, 0xD7}) == hls::Reason::kDamaged);
  REQUIRE(with(file.end, {0xFF, 0x01}) == hls::Reason::kDamaged);
  REQUIRE(with(file.end, {0xFF}) == hls::Reason::kDamaged);
  REQUIRE(with(good.size(), {0xFF, 0x01, 0x55}) == hls::Reason::kDone);  // behind the image
  REQUIRE(reason(File(good.begin(), good.end() - 2)) == hls::Reason::kDamaged);
  REQUIRE(reason(File(good.begin(), good.end() - 1)) == hls::Reason::kDamaged);
  for (std::size_t at = file.scan; at + 1 < file.end; ++at) {
    if (good[at] != std::byte{0xFF} || good[at + 1] == std::byte{0}) continue;
    File other = good;
    other[at + 1] = static_cast<std::byte>(std::to_integer<int>(good[at + 1]) ^ 1);
    CAPTURE(at);
    REQUIRE(reason(other) == hls::Reason::kDamaged);
    other.erase(other.begin() + static_cast<std::ptrdiff_t>(at), other.begin() + static_cast<std::ptrdiff_t>(at) + 2);
    REQUIRE(reason(other) == hls::Reason::kDamaged);
    REQUIRE(with(at, {0x55, 0x55}) == hls::Reason::kDamaged);
  }
}

}  // namespace
}  // namespace millrace
