// The memory that a JPEG's header is charged for is what libjpeg-turbo gets: enough for every file, and no more.
#include <catch2/catch.hpp>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "daemon/formats/probe.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

Result<kernels::U8View> decoded(const std::vector<std::byte>& jpeg, kernels::Size size, Bytes codec,
                                PixelBuffer& buffer) {
  return decode_jpeg({.bytes_untrusted = jpeg,
                      .stored = size,
                      .box = {0, 0, size.width, size.height},
                      .deadline = Clock::time_point::max(),
                      .codec = codec},
                     buffer);
}

}  // namespace

TEST_CASE("every kind of JPEG decodes within what its header was charged for", "[backend]") {
  for (const std::uint32_t channels : {1U, 3U, 4U}) {
    for (const bool progressive : {false, true}) {
      for (int sampling = 0; sampling < 16; ++sampling) {
        const int h = sampling % 4 + 1, v = sampling / 4 + 1;
        const int blocks = channels == 1 ? 1 : channels == 3 ? h * v + 2 : 2 * h * v + 2;  // black is sampled like cyan
        if (blocks > 10) continue;                                                         // T.81 B.2.3
        for (const kernels::Size size : {kernels::Size{1, 1}, {17, 9}, {3, 900}, {2500, 3}, {333, 250}}) {
          CAPTURE(channels, progressive, sampling, size.width, size.height);
          const Pixels pixels =
              make_pixels(static_cast<std::uint32_t>(size.width), static_cast<std::uint32_t>(size.height), channels, 1);
          const auto jpeg = make_jpeg({.pixels = pixels, .h_samp = h, .v_samp = v, .progressive = progressive});
          PixelBuffer buffer;

          const auto info = probe_image(jpeg, SampleLimits{}, UseOrientation::kYes);

          REQUIRE(decoded(jpeg, size, info->codec.at_most, buffer).has_value());
        }
      }
    }
  }
}

TEST_CASE("a JPEG that takes more than was charged is refused, not decoded", "[backend]") {
  const auto jpeg = make_jpeg({.pixels = make_pixels(2000, 1500, 3, 1), .progressive = true});
  PixelBuffer buffer;

  const auto refused = decoded(jpeg, {2000, 1500}, 8_MiB, buffer);

  REQUIRE(refused.error().code == Code::kExhausted);
}

}  // namespace millrace
