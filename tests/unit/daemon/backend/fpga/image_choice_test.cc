#include <catch2/catch.hpp>

#include "daemon/backend/fpga/fpga_lane.h"
#include "daemon/backend/fpga/image_choice.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using Clock = ImageChoice::Clock;

constexpr auto kHold = 10s;
const Clock::time_point kBegin = Clock::time_point() + 1h;

ImageChoice both() {
  return ImageChoice({true, true}, kHold, kBegin);
}

// So many samples at this time; how many of them could be made.
int want(ImageChoice& choice, FpgaImage image, int samples, Clock::time_point now) {
  int made = 0;
  for (int i = 0; i < samples; ++i) made += choice.wants(image, now) ? 1 : 0;
  return made;
}

TEST_CASE("a recipe of indices is the CPU's to refuse of a JPEG", "[fpga]") {
  const SourceInfo source{.format = ImageFormat::kJpeg, .stored = {8, 8}};
  const SampleGeometry geometry{.crop = {0, 0, 8, 8}, .resized = {8, 8}, .window = {0, 0, 8, 8}};
  const FpgaStaging staging{.encoded_bytes = 1 << 20, .tensor_bytes = 1 << 20};
  Recipe recipe{.filter = Filter::kNearest, .channels = Channels::kGrey};
  REQUIRE(fpga_can_make({source, geometry}, recipe, staging));

  recipe.indices = true;

  REQUIRE(fpga_can_make({source, geometry}, recipe, staging).error().message == "the card reads no indices");
}

TEST_CASE("a card begins with files, where there is an image for them", "[fpga]") {
  CHECK(both().now() == ImageChoice::Choice{FpgaImage::kJpeg, 0});
  CHECK(ImageChoice({false, true}, kHold, kBegin).now() == ImageChoice::Choice{FpgaImage::kPacked, 0});
}

TEST_CASE("a card is programmed for what is wanted twice as much, and not before its time", "[fpga]") {
  ImageChoice choice = both();

  CHECK(want(choice, FpgaImage::kPacked, 1000, kBegin + 9s) == 0);
  CHECK(choice.now().swap == 0);
  CHECK(want(choice, FpgaImage::kPacked, 1000, kBegin + 10s) > 900);
  CHECK(choice.now() == ImageChoice::Choice{FpgaImage::kPacked, 1});
  CHECK(want(choice, FpgaImage::kJpeg, 1000, kBegin + 19s) == 0);  // it has just been programmed
}

TEST_CASE("a card stays as it is while both kinds are wanted alike", "[fpga]") {
  ImageChoice choice = both();
  for (int second = 0; second < 100; ++second) {
    want(choice, FpgaImage::kJpeg, 60, kBegin + second * 1s);
    want(choice, FpgaImage::kPacked, 100, kBegin + second * 1s);
  }
  CHECK(choice.now().swap == 0);
}

TEST_CASE("a few samples are not worth programming a card", "[fpga]") {
  ImageChoice choice = both();
  CHECK(want(choice, FpgaImage::kPacked, 30, kBegin + 1h) == 0);
  CHECK(choice.now().swap == 0);
}

TEST_CASE("what was wanted long ago does not count", "[fpga]") {
  ImageChoice choice = both();
  want(choice, FpgaImage::kJpeg, 100'000, kBegin + 1s);
  for (int second = 2; second < 300; ++second) want(choice, FpgaImage::kPacked, 20, kBegin + second * 1s);
  CHECK(choice.now() == ImageChoice::Choice{FpgaImage::kPacked, 1});
}

TEST_CASE("a swap counts as made with its first batch", "[fpga]") {
  ImageChoice choice = both();
  CHECK(choice.has_made(choice.now()));
  want(choice, FpgaImage::kPacked, 1000, kBegin + 10s);
  CHECK_FALSE(choice.has_made(choice.now()));

  choice.note_made(choice.now());

  CHECK(choice.has_made(choice.now()));
}

TEST_CASE("an image that the card does not take is not tried again", "[fpga]") {
  ImageChoice choice = both();
  want(choice, FpgaImage::kPacked, 1000, kBegin + 10s);
  REQUIRE(choice.now().image == FpgaImage::kPacked);

  CHECK(choice.forget(FpgaImage::kPacked, kBegin + 11s));

  CHECK(choice.now() == ImageChoice::Choice{FpgaImage::kJpeg, 2});
  CHECK_FALSE(choice.is_there(FpgaImage::kPacked));
  CHECK(want(choice, FpgaImage::kPacked, 1000, kBegin + 1h) == 0);
  CHECK(want(choice, FpgaImage::kJpeg, 10, kBegin + 1h) == 10);

  CHECK_FALSE(choice.forget(FpgaImage::kJpeg, kBegin + 2h));  // the last one

  CHECK(want(choice, FpgaImage::kJpeg, 10, kBegin + 2h) == 10);
}

TEST_CASE("who insists has the card programmed at once", "[fpga]") {
  ImageChoice choice = both();
  CHECK(choice.insists(FpgaImage::kJpeg, kBegin));
  CHECK(choice.now().swap == 0);

  CHECK(choice.insists(FpgaImage::kPacked, kBegin));

  CHECK(choice.now() == ImageChoice::Choice{FpgaImage::kPacked, 1});
  CHECK_FALSE(ImageChoice({true, false}, kHold, kBegin).insists(FpgaImage::kPacked, kBegin));
}

}  // namespace
}  // namespace millrace
