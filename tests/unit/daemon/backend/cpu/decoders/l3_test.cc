// L3: the pixels are those of the PNG with the same samples; palettes, indices, boxes, and the verdicts on bad files.
#include <string>
#include <vector>

#include "daemon/backend/cpu/decoders/l3_decoder.h"
#include "daemon/backend/cpu/decoders/png/png_decoder.h"
#include "kernels/l3/version1.h"
#include "tests/support/pictures/test_images.h"
#include "tests/unit/daemon/backend/cpu/decoders/decoder_rig.h"

namespace millrace {
namespace {

// The decoder, with the bytes behind the file that it may read.
Result<kernels::U8View> l3_with_slack(const DecodeRequest& request, PixelBuffer& buffer) {
  EncodedBytes bytes(request.bytes_untrusted.size());
  std::copy(request.bytes_untrusted.begin(), request.bytes_untrusted.end(), bytes.writable().begin());
  DecodeRequest padded = request;
  padded.bytes_untrusted = bytes.view();
  return decode_l3(padded, buffer);
}

std::string l3_error(const File& file, kernels::Size size) {
  PixelBuffer buffer;
  const Result<kernels::U8View> decoded = l3_with_slack(request_of(file, size, {0, 0, 1, 1}), buffer);
  REQUIRE_FALSE(decoded);
  REQUIRE(decoded.error().code == Code::kInvalid);
  return decoded.error().message;
}

}  // namespace

TEST_CASE("an L3 file has the pixels of the PNG with the same samples", "[backend]") {
  for (const std::uint32_t channels : {1U, 2U, 3U, 4U}) {
    for (const int depth : {8, 16}) {
      const Pixels pixels = make_pixels(71, 45, channels, channels);
      const int shown = channels == 1 ? 1 : 3;
      CAPTURE(channels, depth);

      REQUIRE(decoded(l3_with_slack, make_l3({.pixels = pixels, .bit_depth = depth}), {71, 45}, shown) ==
              decoded(decode_png, make_png({.pixels = pixels, .bit_depth = depth}), {71, 45}, shown));
    }
  }
}

TEST_CASE("any box of an L3 file has the pixels of the whole", "[backend]") {
  std::mt19937 random(1);
  for (const L3Spec& spec :
       {L3Spec{.pixels = make_pixels(70, 40, 1, 1)}, L3Spec{.pixels = make_pixels(70, 40, 3, 2)},
        L3Spec{.pixels = make_pixels(70, 40, 4, 3)}, L3Spec{.pixels = make_pixels(70, 40, 1, 4), .coloured = true},
        L3Spec{.pixels = make_pixels(70, 40, 3, 5), .bit_depth = 16}}) {
    CAPTURE(spec.pixels.channels, spec.bit_depth, spec.coloured);

    check_boxes(l3_with_slack, make_l3(spec), {70, 40}, random);
  }
}

TEST_CASE("of an L3 file with a palette the colours are shown, and the numbers where indices are wanted", "[backend]") {
  const Pixels numbers = make_pixels(5, 4, 1, 3);
  const File file = make_l3({.pixels = numbers, .coloured = true});

  const std::vector<int> colours = decoded(l3_with_slack, file, {5, 4}, 3);
  const std::vector<int> indices = decoded(indices_by<l3_with_slack>, file, {5, 4}, 1);

  REQUIRE(indices == std::vector<int>(numbers.data.begin(), numbers.data.end()));
  for (std::size_t i = 0; i < colours.size(); ++i) REQUIRE(colours[i] == gif_colour(numbers.data[i / 3])[i % 3]);
}

TEST_CASE("levels of a grey L3 are indices, and those of 16 bits are not", "[backend]") {
  const Pixels grey = make_pixels(6, 5, 1, 3);
  PixelBuffer buffer;
  const Result<kernels::U8View> deep =
      indices_by<l3_with_slack>(request_of(make_l3({.pixels = grey, .bit_depth = 16}), {6, 5}, {0, 0, 6, 5}), buffer);

  REQUIRE(decoded(indices_by<l3_with_slack>, make_l3({.pixels = grey}), {6, 5}, 1) ==
          std::vector<int>(grey.data.begin(), grey.data.end()));
  REQUIRE_FALSE(deep);
  REQUIRE_THAT(deep.error().message, Catch::StartsWith("a grey L3 of 16 bits, whose levels are no indices"));
}

TEST_CASE("a damaged L3 file is refused with what is wrong, whatever the box", "[backend]") {
  const File good = make_l3({.pixels = make_pixels(70, 40, 3, 2)});
  File bad_tile = good, bad_head = good;
  bad_tile.back() ^= std::byte{1};
  bad_head[70] ^= std::byte{1};

  CHECK(l3_error(bad_tile, {70, 40}) == "a broken L3 file: the checksum of its tiles differs");
  CHECK(l3_error(bad_head, {70, 40}) == "a broken L3 file: the checksum of its head differs");
  CHECK(l3_error({good.begin(), good.end() - 1}, {70, 40}) == "a broken L3 file: cut off");
  CHECK(l3_error({good.begin(), good.begin() + 66}, {70, 40}) == "a broken L3 file: cut off");
  CHECK_THAT(l3_error(good, {70, 41}), Catch::Contains("the decoder finds 70x40 pixels"));
}

TEST_CASE("a file of L3 version 1 is decoded, and refused where a patch does not add up", "[backend]") {
  const Pixels pixels = make_pixels(128, 64, 3, 4);
  std::vector<std::uint8_t> bytes;
  REQUIRE(kernels::l3::encode_version1({{pixels.data.data(), {128, 64}, 3, 1, 384}}, bytes).empty());
  const File file = file_of(std::string(bytes.begin(), bytes.end()));
  File bad = file;
  bad[13] ^= std::byte{1}, bad[15] ^= std::byte{1};  // sizes of the first two patches

  REQUIRE(decoded(l3_with_slack, file, {128, 64}, 3) == std::vector<int>(pixels.data.begin(), pixels.data.end()));
  REQUIRE(probe_image(file, SampleLimits{}, UseOrientation::kYes)->stored == Size{128, 64});
  CHECK_THAT(l3_error(bad, {128, 64}), Catch::StartsWith("a broken L3 file: "));
  CHECK(l3_error({file.begin(), file.end() - 1}, {128, 64}) == "a broken L3 file: cut off");
}

TEST_CASE("the probe tells a damaged L3 head from a good one", "[backend]") {
  File file = make_l3({.pixels = make_pixels(70, 40, 3, 2)});
  file[8] ^= std::byte{1};
  File cut(file.begin(), file.begin() + 30);

  CHECK(refused(file) == "a broken L3 file: the checksum of its head differs");
  CHECK(refused(cut) == "a broken L3 file: cut off");
}

}  // namespace millrace
