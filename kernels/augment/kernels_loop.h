// The loops of all targets, for a file that has defined MILLRACE_AUGMENT_TARGET, the attribute of the instruction set,
// which makes the compiler vectorise them with it, and map(). Included once by each such file, in its anonymous
// namespace. Arithmetic is Pillow's (libImaging/Convert.c, Blend.c, Filter.c): the same operations on floats and doubles
// in the same order, or integers that give the same.
#pragma once

#define MILLRACE_AUGMENT_INLINE MILLRACE_AUGMENT_TARGET inline __attribute__((always_inline))

MILLRACE_AUGMENT_TARGET void split(const Byte* pixels, std::size_t count, const Planes& planes, std::size_t at) {
  Byte* __restrict r = planes.plane[0] + at;
  Byte* __restrict g = planes.plane[1] + at;
  Byte* __restrict b = planes.plane[2] + at;
  for (std::size_t i = 0; i < count; ++i) {
    r[i] = pixels[3 * i];
    g[i] = pixels[3 * i + 1];
    b[i] = pixels[3 * i + 2];
  }
}

MILLRACE_AUGMENT_TARGET void merge(const Planes& planes, std::size_t at, std::size_t count, Byte* __restrict pixels) {
  const Byte* r = planes.plane[0] + at;
  const Byte* g = planes.plane[1] + at;
  const Byte* b = planes.plane[2] + at;
  for (std::size_t i = 0; i < count; ++i) {
    pixels[3 * i] = r[i];
    pixels[3 * i + 1] = g[i];
    pixels[3 * i + 2] = b[i];
  }
}

MILLRACE_AUGMENT_INLINE int luma(int r, int g, int b) {
  return (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16;
}

MILLRACE_AUGMENT_TARGET void grey(const Planes& planes, std::size_t padded) {
  Byte* __restrict r = planes.plane[0];
  Byte* __restrict g = planes.plane[1];
  Byte* __restrict b = planes.plane[2];
  for (std::size_t i = 0; i < padded; ++i) r[i] = g[i] = b[i] = static_cast<Byte>(luma(r[i], g[i], b[i]));
}

MILLRACE_AUGMENT_TARGET std::uint64_t grey_sum(const Planes& planes, std::size_t count) {
  const Byte* r = planes.plane[0];
  const Byte* g = planes.plane[1];
  const Byte* b = planes.plane[2];
  constexpr std::size_t kPart = std::size_t{1} << 20;  // whose sum fits 32 bits
  std::uint64_t all = 0;
  for (std::size_t from = 0; from < count; from += kPart) {
    const std::size_t to = from + kPart < count ? from + kPart : count;
    int sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += luma(r[i], g[i], b[i]);
    all += static_cast<std::uint64_t>(sum);
  }
  return all;
}

MILLRACE_AUGMENT_INLINE Byte blend(int degenerate, int value, float factor) {
  const float blended = static_cast<float>(degenerate) + factor * static_cast<float>(value - degenerate);
  const float positive = blended > 0.0F ? blended : 0.0F;
  return static_cast<Byte>(static_cast<int>(positive < 255.0F ? positive : 255.0F));
}

MILLRACE_AUGMENT_TARGET void saturate(float factor, const Planes& planes, std::size_t padded) {
  Byte* __restrict r = planes.plane[0];
  Byte* __restrict g = planes.plane[1];
  Byte* __restrict b = planes.plane[2];
  for (std::size_t i = 0; i < padded; ++i) {
    const int l = luma(r[i], g[i], b[i]);
    r[i] = blend(l, r[i], factor);
    g[i] = blend(l, g[i], factor);
    b[i] = blend(l, b[i], factor);
  }
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

// Thirteenths are never halves: the integers below are the filter's floats, rounded. 5042 / 65536 is a thirteenth for
// sums up to 3321.
MILLRACE_AUGMENT_TARGET void sharpen(float factor, const Byte* above, const Byte* row, const Byte* below,
                                     std::size_t width, Byte* __restrict out) {
  out[0] = row[0];
  out[width - 1] = row[width - 1];
  for (std::size_t x = 1; x + 1 < width; ++x) {
    const unsigned sum = above[x - 1] + above[x] + above[x + 1] + row[x - 1] + 5U * row[x] + row[x + 1] + below[x - 1] +
                         below[x] + below[x + 1];
    out[x] = blend(static_cast<int>(((sum + 6) * 5042) >> 16), row[x], factor);
  }
}

MILLRACE_AUGMENT_TARGET void mirror(const Byte* row, std::size_t width, Byte* __restrict out) {
  for (std::size_t x = 0; x < width; ++x) out[x] = row[width - 1 - x];
}

constexpr Kernels kKernels{split, merge, map, grey, grey_sum, saturate, hue, sharpen, mirror};
