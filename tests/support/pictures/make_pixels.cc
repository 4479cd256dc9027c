#include <algorithm>

#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

// SplitMix64's finaliser: a value for a position, without state.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

struct Disc {
  std::int64_t x, y, radius;
  std::uint64_t colour;
};

struct Scene {
  std::uint64_t seed;
  std::int64_t width, height;
  Disc discs[4];
};

Scene make_scene(std::uint32_t width, std::uint32_t height, std::uint32_t seed) {
  Scene scene{.seed = mix(seed), .width = width, .height = height, .discs = {}};
  for (std::uint64_t i = 0; i < 4; ++i) {
    const std::uint64_t random = mix(scene.seed + 17 * i);
    scene.discs[i] = {.x = static_cast<std::int64_t>(random % width),
                      .y = static_cast<std::int64_t>((random >> 20) % height),
                      .radius = static_cast<std::int64_t>(1 + (random >> 40) % (1 + std::min(width, height) / 4)),
                      .colour = mix(random)};
  }
  return scene;
}

std::uint8_t sample(const Scene& scene, std::int64_t x, std::int64_t y, std::uint32_t channel) {
  const std::uint64_t tint = scene.seed >> (8 * channel);
  std::int64_t value =
      static_cast<std::int64_t>(tint % 96) + 120 * x / scene.width + (channel % 2 == 0 ? 60 : -60) * y / scene.height;
  for (const Disc& disc : scene.discs) {
    const std::int64_t dx = x - disc.x, dy = y - disc.y;
    if (dx * dx + dy * dy < disc.radius * disc.radius)
      value = static_cast<std::int64_t>((disc.colour >> (8 * channel)) & 255);
  }
  if ((x + y) % 61 == 0) value = 250;  // thin diagonal lines
  const std::uint64_t noise =
      mix(scene.seed ^ (static_cast<std::uint64_t>(y) << 32) ^ (static_cast<std::uint64_t>(x) << 3) ^ channel);
  value += static_cast<std::int64_t>(noise % 17) - 8;
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(value, 0, 255));
}

}  // namespace

Pixels make_pixels(std::uint32_t width, std::uint32_t height, std::uint32_t channels, std::uint32_t seed) {
  Pixels pixels{.width = width, .height = height, .channels = channels, .data = {}};
  pixels.data.reserve(std::size_t{width} * height * channels);
  const Scene scene = make_scene(width, height, seed);
  for (std::uint32_t y = 0; y < height; ++y)
    for (std::uint32_t x = 0; x < width; ++x)
      for (std::uint32_t channel = 0; channel < channels; ++channel)
        pixels.data.push_back(sample(scene, x, y, channel));
  return pixels;
}

}  // namespace millrace
