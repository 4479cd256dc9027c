#include "tests/unit/kernels/jpeg/damaged_jpeg.h"

#include <algorithm>

#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {

bool one_in(std::mt19937& random, int count) {
  return below(random, count) == 0;
}

JpegFile located(File bytes) {
  const std::byte sos[] = {std::byte{0xFF}, std::byte{0xDA}};
  const auto at = std::search(bytes.begin(), bytes.end(), std::begin(sos), std::end(sos)) - bytes.begin();
  const std::size_t scan = static_cast<std::size_t>(at) + 2;
  const std::size_t length =
      std::to_integer<std::size_t>(bytes[scan]) << 8 | std::to_integer<std::size_t>(bytes[scan + 1]);
  const std::size_t end = bytes.size() - 2;
  return {.bytes = std::move(bytes), .scan = scan + length, .end = end};
}

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

}  // namespace millrace
