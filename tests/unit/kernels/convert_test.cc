#include <catch2/catch.hpp>
#include <vector>

#include "kernels/cpu/convert.h"

using namespace millrace::kernels;

TEST_CASE("CMYK becomes the product of light and the absence of ink, for every pair of values", "[kernels][convert]") {
  for (int ink = 0; ink < 256; ++ink) {
    for (int black = 0; black < 256; ++black) {
      const auto c = static_cast<std::uint8_t>(ink);
      const std::uint8_t cmyk[] = {c, static_cast<std::uint8_t>(255 - ink), 0, static_cast<std::uint8_t>(black)};
      const std::uint8_t inverted[] = {static_cast<std::uint8_t>(255 - ink), c, 255,
                                       static_cast<std::uint8_t>(255 - black)};
      const auto rounded = [&](int light) { return (2 * light * (255 - black) + 255) / 510; };

      std::uint8_t rgb[3], from_inverted[3];
      cmyk_to_rgb(cmyk, 1, CmykInk::kNormal, rgb);
      cmyk_to_rgb(inverted, 1, CmykInk::kInverted, from_inverted);

      if (rgb[0] != rounded(255 - ink) || rgb[1] != rounded(ink) || rgb[2] != 255 - black)
        FAIL("ink " << ink << " black " << black);
      for (int i = 0; i < 3; ++i) {
        if (rgb[i] != from_inverted[i]) FAIL("inverted ink " << ink << " black " << black);
      }
    }
  }
  SUCCEED();
}

TEST_CASE("CMYK becomes RGB in place", "[kernels][convert]") {
  std::vector<std::uint8_t> pixels = {0, 128, 255, 0, 10, 20, 30, 40};
  std::vector<std::uint8_t> expected(6);
  cmyk_to_rgb(pixels.data(), 2, CmykInk::kNormal, expected.data());

  cmyk_to_rgb(pixels.data(), 2, CmykInk::kNormal, pixels.data());

  REQUIRE(std::vector<std::uint8_t>(pixels.begin(), pixels.begin() + 6) == expected);
}

TEST_CASE("16-bit samples are clipped", "[kernels][convert]") {
  const std::uint16_t samples[] = {0, 255, 256, 0x1234, 0xFFFF};
  std::vector<std::uint8_t> clipped(5);

  clipped_to_bytes(samples, 5, clipped.data());

  REQUIRE(clipped == std::vector<std::uint8_t>{0, 255, 255, 255, 255});
}
