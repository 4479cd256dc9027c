// When a damaged JPEG is an error: of a whole picture and of a crop, with our decoder in every form and by
// libjpeg-turbo, with a seek index and without.
#include <algorithm>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/formats/probe.h"
#include "tests/support/jpeg/restart_damage.h"
#include "tests/support/pictures/test_images.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {
namespace {

constexpr kernels::Size kVerdictSize{320, 240};
constexpr kernels::Box kWhole{0, 0, kVerdictSize.width, kVerdictSize.height}, kTop{10, 4, 100, 40},
    kBottom{200, 190, 100, 40};

JpegFile photograph(int restart_interval = 0) {
  JpegFile file;
  file.bytes = make_jpeg(
      {.pixels = make_pixels(kVerdictSize.width, kVerdictSize.height, 3, 9), .restart_interval = restart_interval});
  const std::byte sos[] = {std::byte{0xFF}, std::byte{0xDA}};
  const auto begin = file.bytes.begin();
  file.scan =
      static_cast<std::size_t>(std::search(begin, file.bytes.end(), std::begin(sos), std::end(sos)) - begin) + 14;
  file.end = file.bytes.size() - 2;
  return file;
}

File with(const File& file, std::size_t at, std::initializer_list<int> bytes) {
  File result = file;
  std::vector<std::byte> inserted;
  for (const int byte : bytes) inserted.push_back(static_cast<std::byte>(byte));
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(at), inserted.begin(), inserted.end());
  return result;
}

// In the middle of the scan, between two bytes that are not 0xFF.
std::size_t middle_of(const JpegFile& file) {
  std::size_t at = file.scan + (file.end - file.scan) / 2;
  while (file.bytes[at] == std::byte{0xFF} || file.bytes[at - 1] == std::byte{0xFF}) ++at;
  return at;
}

// Whether the box is delivered; the same whichever decoder decodes.
bool is_delivered(const File& file, const kernels::Box& box) {
  PixelBuffer buffer, other;
  const auto expected = decode_jpeg(request_for(file, kVerdictSize, box), buffer);
  for (const auto& decoder : decoders())
    REQUIRE(same_outcome(decode_jpeg(request_for(file, kVerdictSize, box), other, *decoder), expected));
  if (!expected) REQUIRE(expected.error().code == Code::kInvalid);
  return expected.has_value();
}

std::vector<std::uint8_t> verdict_pixels_of(const File& file, const kernels::Box& box) {
  PixelBuffer buffer;
  const auto part = decode_jpeg(request_for(file, kVerdictSize, box), buffer);
  REQUIRE(part);
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < part->height; ++y)
    pixels.insert(pixels.end(), part->row(y), part->row(y) + part->width * part->channels);
  return pixels;
}

EncodedImage encoded(const File& file) {
  EncodedBytes bytes(file.size());
  std::copy(file.begin(), file.end(), bytes.writable().begin());
  const auto info = probe_image(bytes.view(), SampleLimits{}, UseOrientation::kYes);
  REQUIRE(info);
  return EncodedImage{std::move(bytes), *info};
}

// By the way of the daemon's lanes.
std::optional<Error> error_of(const File& file, const kernels::Box& box, Filter filter, ImageWorkspace& workspace) {
  SampleGeometry geometry;
  geometry.crop = {box.left, box.top, box.width, box.height};
  geometry.resized = {static_cast<std::uint32_t>(box.width) / 4, static_cast<std::uint32_t>(box.height) / 4};
  geometry.window = {0, 0, static_cast<int>(geometry.resized.width), static_cast<int>(geometry.resized.height)};
  Recipe recipe;
  recipe.filter = filter;
  std::vector<std::byte> tensor(image_bytes(recipe, geometry.output()).count);
  const SampleTask task{0, encoded(file), geometry, in_host_memory(tensor)};
  return make_image(task, recipe, SampleLimits{}, workspace).error;
}

}  // namespace

TEST_CASE("a marker within a scan that belongs into none is libjpeg's error whole, and one in every crop that meets it",
          "[backend][verdict]") {
  for (const int interval : {0, 7}) {
    const JpegFile file = photograph(interval);
    for (const int marker : {0x01, 0x02, 0x4F, 0xBF, 0xC0, 0xDA, 0xF0}) {
      const File damaged = with(file.bytes, middle_of(file), {0xFF, marker});
      CAPTURE(interval, marker);

      // TEM may stand anywhere; and where restarts are to be expected, libjpeg looks for the next one.
      const bool is_passed_over = marker == 0x01 || (interval > 0 && marker < 0xC0);
      REQUIRE(is_delivered(damaged, kWhole) == is_passed_over);
      REQUIRE(is_delivered(damaged, kTop) == is_passed_over);
      REQUIRE_FALSE(is_delivered(damaged, kBottom));
    }
  }
}

TEST_CASE("a scan that ends early is delivered whole, as by Pillow, and no crop that needs what is missing",
          "[backend][verdict]") {
  for (const int interval : {0, 7}) {
    const JpegFile file = photograph(interval);
    const File damaged = with(file.bytes, middle_of(file), {0xFF, 0xD9});
    CAPTURE(interval);

    REQUIRE(is_delivered(damaged, kWhole));
    REQUIRE(is_delivered(damaged, kTop));
    REQUIRE_FALSE(is_delivered(damaged, kBottom));
    PixelBuffer buffer;
    REQUIRE(
        decode_jpeg(request_for(damaged, kVerdictSize, kBottom), buffer).error().message ==
        "damaged JPEG: Corrupt JPEG data: premature end of data segment (a crop is refused for this; shown whole, the "
        "picture may still be made)");
    REQUIRE(verdict_pixels_of(damaged, kTop) == verdict_pixels_of(file.bytes, kTop));
  }
}

TEST_CASE("what follows the scan counts up to the end marker", "[backend][verdict]") {
  for (const int interval : {0, 7}) {
    const JpegFile file = photograph(interval);
    const auto behind = [&](std::initializer_list<int> bytes) { return with(file.bytes, file.end, bytes); };
    CAPTURE(interval);

    for (const kernels::Box& box : {kWhole, kTop}) {
      REQUIRE(is_delivered(behind({0xFF, 0xFE, 0, 4, 'h', 'i'}), box));          // a comment
      REQUIRE(is_delivered(behind({0xFF, 0xFF, 0xFF}), box));                    // fill bytes
      REQUIRE_FALSE(is_delivered(behind({0xFF, 0x02}), box));                    // undefined
      REQUIRE_FALSE(is_delivered(behind({0xFF, 0xD8}), box));                    // a second beginning
      REQUIRE_FALSE(is_delivered(behind({0xFF, 0xDD, 0, 3, 0}), box));           // a segment of a wrong length
      REQUIRE(is_delivered(with(behind({}), file.end + 2, {0xFF, 0x02}), box));  // behind the end marker
    }
  }
}

TEST_CASE("Pillow reads a file by 64 KiB and sees what follows the image in the same block only",
          "[backend][verdict]") {
  const JpegFile file = photograph();
  REQUIRE(file.end < 65536);
  File near = file.bytes, far = file.bytes;
  near.resize(file.end);
  far.resize(file.end);
  near.insert(near.end(), 65000 - near.size(), std::byte{7});
  far.insert(far.end(), 70000 - far.size(), std::byte{7});

  REQUIRE_FALSE(is_delivered(with(near, near.size(), {0xFF, 0x02, 0xFF, 0xD9}), kWhole));
  REQUIRE(is_delivered(with(far, far.size(), {0xFF, 0x02, 0xFF, 0xD9}), kWhole));
}

TEST_CASE("a JPEG with arithmetic coding may be longer than such a block", "[backend][verdict]") {
  const File file = make_jpeg({.pixels = make_pixels(900, 700, 3, 9), .quality = 97, .arithmetic = true});
  REQUIRE(file.size() > 2 * 65536);
  PixelBuffer buffer;

  REQUIRE(decode_jpeg(request_for(file, {900, 700}, {0, 0, 900, 700}), buffer));
  REQUIRE(decode_jpeg(request_for(file, {900, 700}, {300, 500, 90, 70}), buffer));
}

TEST_CASE("damage in restart intervals that a crop skips goes unseen on every processor", "[backend][verdict]") {
  const JpegFile file = photograph(5);
  const auto restarts = restarts_of(file);
  File damaged = file.bytes;
  const std::size_t begin = restarts[10] + 2, end = restarts[11];
  for (std::size_t i = begin; i < end; ++i) damaged[i] = std::byte(i * 37 % 255);
  for (const kernels::Target target : kernels::available_targets()) {
    ImageWorkspace workspace(JpegPath::kFastest, {.target = target});
    CAPTURE(name_of(target));

    REQUIRE_FALSE(error_of(damaged, kBottom, Filter::kBilinear, workspace));
    REQUIRE_FALSE(error_of(damaged, kBottom, Filter::kNearest, workspace));
    REQUIRE(error_of(damaged, {0, 0, kVerdictSize.width, kVerdictSize.height / 2}, Filter::kBilinear, workspace));
  }
}

TEST_CASE("a picture that is shown whole has its own verdict, whatever of it the filter picks out",
          "[backend][verdict]") {
  const JpegFile file = photograph();
  const File damaged = with(file.bytes, file.end, {0xFF, 0x02});
  const File short_one = with(file.bytes, middle_of(file), {0xFF, 0xD9});
  for (const kernels::Target target : kernels::available_targets()) {
    ImageWorkspace workspace(JpegPath::kFastest, {.target = target});
    for (const Filter filter : {Filter::kNearest, Filter::kBox, Filter::kBilinear, Filter::kLanczos}) {
      CAPTURE(name_of(target), static_cast<int>(filter));

      REQUIRE(error_of(damaged, kWhole, filter, workspace));
      REQUIRE_FALSE(error_of(short_one, kWhole, filter, workspace));
    }
  }
}

TEST_CASE("fast has the verdict of exact, whatever of a picture the filter picks out", "[backend][verdict]") {
  constexpr kernels::Size kOdd{517, 389};
  const File file = make_jpeg({.pixels = make_pixels(kOdd.width, kOdd.height, 4, 9)});  // not for our own decoder
  File damaged(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(file.size() - 40));
  damaged.insert(damaged.end(), {std::byte{0xFF}, std::byte{0xD9}});
  ImageWorkspace workspace;
  for (const Filter filter : {Filter::kBox, Filter::kBilinear, Filter::kLanczos}) {
    for (const Size size : {Size{36, 36}, Size{64, 48}}) {
      SampleGeometry geometry;
      geometry.crop = {0, 0, kOdd.width, kOdd.height};
      geometry.resized = size;
      geometry.window = {0, 0, static_cast<int>(size.width), static_cast<int>(size.height)};
      Recipe recipe;
      recipe.filter = filter;
      std::vector<std::byte> tensor(image_bytes(recipe, size).count);
      const SampleTask task{0, encoded(damaged), geometry, in_host_memory(tensor)};
      CAPTURE(static_cast<int>(filter), size.width);

      REQUIRE_FALSE(make_image(task, recipe, SampleLimits{}, workspace, Fidelity::kExact).error);
      REQUIRE_FALSE(make_image(task, recipe, SampleLimits{}, workspace, Fidelity::kFast).error);
    }
  }
}

TEST_CASE("a crop of a damaged file has the same verdict at first access and with the index that this made",
          "[backend][verdict][seek]") {
  std::mt19937 random(77);
  const JpegFile file = photograph();
  Counters counters;
  int refused = 0;
  for (int i = 0; i < 60; ++i) {
    const auto anywhere = [&] {
      return file.scan + static_cast<std::size_t>(below(random, static_cast<int>(file.end - file.scan)));
    };
    File damaged = i % 2 == 0 ? file.bytes : with(file.bytes, anywhere(), {0xFF, 0xD9});
    for (int bytes = 1 + below(random, 3); bytes > 0; --bytes) damaged[anywhere()] ^= std::byte(1 + random() % 255);
    ImageCache cache({.memory = 16_MiB, .disk = Bytes{0}, .state_dir = ""}, counters);
    ImageWorkspace indexed(JpegPath::kFastest, {}, &cache), plain;
    for (int box = 0; box < 6; ++box) {
      const kernels::Box part = random_box(random, kVerdictSize);
      if (part.width < 4 || part.height < 4) continue;
      const auto expected = error_of(damaged, part, Filter::kBilinear, plain);
      const auto found = error_of(damaged, part, Filter::kBilinear, indexed);
      CAPTURE(i, box);
      REQUIRE(found.has_value() == expected.has_value());
      refused += expected.has_value();
    }
  }
  REQUIRE(refused > 20);
}

}  // namespace millrace
