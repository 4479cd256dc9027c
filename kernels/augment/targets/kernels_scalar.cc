// The reference, for any processor.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/augment/kernels.h"

#define MILLRACE_AUGMENT_TARGET

#define MILLRACE_AUGMENT_VECTOR 16

namespace millrace::kernels::augment {
namespace {

void map(const Byte* table, Byte* plane, std::size_t padded) {
  for (std::size_t i = 0; i < padded; ++i) plane[i] = table[plane[i]];
}

// To HSV, on, and back. Divisions of grey pixels give values that nothing uses.
MILLRACE_AUGMENT_TARGET void hue(Byte shift, const Planes& planes, std::size_t padded) {
  Byte* __restrict red = planes.plane[0];
  Byte* __restrict green = planes.plane[1];
  Byte* __restrict blue = planes.plane[2];
  for (std::size_t at = 0; at < padded; ++at) {
    const int r = red[at], g = green[at], b = blue[at];
    const int rg_most = r > g ? r : g, rg_least = r < g ? r : g;
    const int most = rg_most > b ? rg_most : b, least = rg_least < b ? rg_least : b;
    const int range = most > least ? most - least : 1;
    const float spread = static_cast<float>(range);
    const float away_r = static_cast<float>(most - r) / spread;
    const float away_g = static_cast<float>(most - g) / spread;
    const float away_b = static_cast<float>(most - b) / spread;
    const float minuend = r == most ? away_b : g == most ? away_r : away_g;
    const float subtrahend = r == most ? away_g : g == most ? away_b : away_r;
    const double base = r == most ? 0.0 : g == most ? 2.0 : 4.0;
    const float sixths = static_cast<float>((base + static_cast<double>(minuend)) - static_cast<double>(subtrahend));
    const double turned = static_cast<double>(sixths) / 6.0 + 1.0;
    const float h = static_cast<float>(turned >= 1.0 ? turned - 1.0 : turned);
    const int h_byte = static_cast<int>(static_cast<double>(h) * 255.0);
    const float s = spread / static_cast<float>(most > 0 ? most : 1);
    const int s_byte = static_cast<int>(static_cast<double>(s) * 255.0);

    const int turned_byte = (h_byte + shift) & 0xFF;
    const double sector_and_rest = static_cast<double>(static_cast<float>(turned_byte)) * 6.0 / 255.0;
    const int sector = static_cast<int>(sector_and_rest);
    const float f = static_cast<float>(sector_and_rest - static_cast<double>(static_cast<float>(sector)));
    const float fs = static_cast<float>(static_cast<double>(static_cast<float>(s_byte)) / 255.0);
    const double v = static_cast<double>(most);
    const double toward = static_cast<double>(fs * f);
    const double from = static_cast<double>(fs) * (1.0 - static_cast<double>(f));
    const int p = static_cast<int>(v * (1.0 - static_cast<double>(fs)) + 0.5);
    const int q = static_cast<int>(v * (1.0 - toward) + 0.5);
    const int t = static_cast<int>(v * (1.0 - from) + 0.5);
    const int k = sector >= 6 ? 0 : sector;
    const bool is_grey = most == least || s_byte == 0;
    const int new_r = k == 0 || k == 5 ? most : k == 1 ? q : k == 4 ? t : p;
    const int new_g = k == 1 || k == 2 ? most : k == 3 ? q : k == 0 ? t : p;
    const int new_b = k == 3 || k == 4 ? most : k == 5 ? q : k == 2 ? t : p;
    red[at] = static_cast<Byte>(is_grey ? most : new_r);
    green[at] = static_cast<Byte>(is_grey ? most : new_g);
    blue[at] = static_cast<Byte>(is_grey ? most : new_b);
  }
}

#include "kernels/augment/targets/geometry_loop.h"
#include "kernels/augment/targets/kernels_loop.h"

constexpr Kernels kKernels = kernels_with(map, hue);

}  // namespace

const Kernels& scalar_kernels() {
  return kKernels;
}

}  // namespace millrace::kernels::augment
