// The FPGA decoder's verdict on damaged files beside that of the CPU's image maker: what a card makes is what the CPU
// makes, element by element, and a file that the CPU calls damaged is made by neither.
#include <algorithm>

#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/backend/words.h"
#include "daemon/formats/probe.h"
#include "hls/decoder/jpeg/decode_jpeg.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/jpeg/restart_damage.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/hls/rig.h"
#include "tests/unit/kernels/jpeg/damaged_jpeg.h"

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

void check_verdict(const Kind& kind, HlsRunner& runner, const std::vector<HlsRequest>& requests, Tally& tally) {
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
    HlsRunner runner(kind.ours, ::decode_jpeg);
    for (int round = 0; round < rounds(15); ++round) {
      std::vector<File> files;
      for (int i = 0; i < 16; ++i) files.push_back(draw_damage(draw_file(random), random));
      std::vector<HlsRequest> requests;
      for (const File& file : files) {
        if (const auto request = draw_request(file, random)) requests.push_back(*request);
      }
      CAPTURE(round);
      check_verdict(kind, runner, requests, tally);
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
  HlsRunner runner(kind.ours, ::decode_jpeg);
  for (int round = 0; round < rounds(8); ++round) {
    std::vector<File> files;
    for (int i = 0; i < 8; ++i)
      files.push_back(draw_damage(located(photographs[random() % photographs.size()].second), random));
    std::vector<HlsRequest> requests;
    for (const File& file : files) {
      if (const auto request = draw_request(file, random)) requests.push_back(*request);
    }
    check_verdict(kind, runner, requests, tally);
  }
  REQUIRE(tally.made > 0);
}

TEST_CASE("a level beyond 16 bits, bytes after the last block and markers out of turn are not made", "[hls][verdict]") {
  const File good = make_jpeg({.pixels = make_pixels(64, 64, 3, 5), .restart_interval = 2});
  const JpegFile file = located(good);
  HlsRunner runner({}, ::decode_jpeg);
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
