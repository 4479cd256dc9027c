// The loops of all targets, for a file that has defined MILLRACE_AUGMENT_TARGET, the attribute of the instruction
// set, which makes the compiler vectorise them with it, and MILLRACE_AUGMENT_VECTOR, its registers' bytes.
// Included once by each such file, in its anonymous namespace. Arithmetic is Pillow's (libImaging/Convert.c, Blend.c,
// Filter.c): the same operations on floats and doubles in the same order, or integers that give the same.
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

MILLRACE_AUGMENT_TARGET void widen_range(const Byte* plane, std::size_t count, Byte* least, Byte* most) {
  Byte low = *least, high = *most;
  for (std::size_t i = 0; i < count; ++i) {
    low = plane[i] < low ? plane[i] : low;
    high = plane[i] > high ? plane[i] : high;
  }
  *least = low;
  *most = high;
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

MILLRACE_AUGMENT_INLINE Byte blended(int degenerate, int value, float factor) {
  const float blended = static_cast<float>(degenerate) + factor * static_cast<float>(value - degenerate);
  const float positive = blended > 0.0F ? blended : 0.0F;
  return static_cast<Byte>(static_cast<int>(positive < 255.0F ? positive : 255.0F));
}

MILLRACE_AUGMENT_TARGET void prepare(float factor, Blend& blend) {
  blend.factor = factor;
  blend.has_tables = false;
}

MILLRACE_AUGMENT_TARGET void saturate(const Blend& blend, const Planes& planes, std::size_t padded) {
  Byte* __restrict r = planes.plane[0];
  Byte* __restrict g = planes.plane[1];
  Byte* __restrict b = planes.plane[2];
  const float factor = blend.factor;
  for (std::size_t i = 0; i < padded; ++i) {
    const int l = luma(r[i], g[i], b[i]);
    r[i] = blended(l, r[i], factor);
    g[i] = blended(l, g[i], factor);
    b[i] = blended(l, b[i], factor);
  }
}

// Thirteenths are never halves: the integers below are the filter's floats, rounded. 5042 / 65536 is a thirteenth for
// sums up to 3321. The sums of columns are taken once.
MILLRACE_AUGMENT_TARGET void smooth(const Byte* above, const Byte* row, const Byte* below, std::size_t width,
                                    Byte* __restrict out) {
  constexpr std::size_t kPart = 512;
  std::uint16_t columns[kPart + 2];
  for (std::size_t from = 1; from + 1 < width; from += kPart) {
    const std::size_t count = from + kPart < width - 1 ? kPart : width - 1 - from;
    for (std::size_t i = 0; i < count + 2; ++i) {
      columns[i] = static_cast<std::uint16_t>(above[from - 1 + i] + row[from - 1 + i] + below[from - 1 + i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const auto sum = static_cast<std::uint16_t>(columns[i] + columns[i + 1] + columns[i + 2] + 4 * row[from + i] + 6);
      out[from + i] = static_cast<Byte>((sum * 5042U) >> 16);
    }
  }
}

MILLRACE_AUGMENT_TARGET void blend_planes(const Blend& blend, const Byte* in, std::size_t padded,
                                          Byte* __restrict out) {
  const float factor = blend.factor;
  for (std::size_t i = 0; i < padded; ++i) out[i] = blended(out[i], in[i], factor);
}

MILLRACE_AUGMENT_TARGET void mirror(const Byte* row, std::size_t width, Byte* __restrict out) {
  for (std::size_t x = 0; x < width; ++x) out[x] = row[width - 1 - x];
}

MILLRACE_AUGMENT_TARGET void box(const BoxPass& pass, const Byte* in, std::size_t columns, std::size_t width,
                                 int height, Byte* __restrict out) {
  std::uint32_t sums[kStrip]{};
  const auto row = [&](int y) {
    return in + static_cast<std::size_t>(y < 0 ? 0 : y < height ? y : height - 1) * width;
  };
  // Around the row above the first. What is beyond an edge is that edge's row.
  for (int y = -1 - pass.radius; y < pass.radius; ++y) {
    const Byte* const more = row(y);
    for (std::size_t x = 0; x < columns; ++x) sums[x] += more[x];
  }
  const std::uint32_t inner = pass.inner, outer = pass.outer;
  for (int y = 0; y < height; ++y) {
    const Byte* const before = row(y - pass.radius - 1);
    const Byte* const last = row(y + pass.radius);
    const Byte* const after = row(y + pass.radius + 1);
    Byte* __restrict to = out + static_cast<std::size_t>(y) * width;
    for (std::size_t x = 0; x < columns; ++x) {
      sums[x] += static_cast<std::uint32_t>(last[x] - before[x]);
      const auto ends = static_cast<std::uint32_t>(before[x] + after[x]);
      to[x] = static_cast<Byte>((sums[x] * inner + ends * outer + (1U << 23)) >> 24);
    }
  }
}

typedef float Weighed __attribute__((vector_size(MILLRACE_AUGMENT_VECTOR)));
constexpr std::size_t kWeighed = sizeof(Weighed) / sizeof(float);

MILLRACE_AUGMENT_INLINE void weigh_first(float weight, const float* from, Weighed& sum) {
  std::memcpy(&sum, from, sizeof sum);
  sum *= weight;
}

MILLRACE_AUGMENT_INLINE void weigh_pair(float weight, const float* before, const float* after, Weighed& sum) {
  Weighed a, b;
  std::memcpy(&a, before, sizeof a);
  std::memcpy(&b, after, sizeof b);
  sum += weight * (a + b);
}

// The middle first, then the sum of both values at a distance, by its weight. This order is the same for all targets.
// before(i) and after(i) are where those values are. Four sums, which stay in registers.
template <class Before, class After>
MILLRACE_AUGMENT_INLINE void weigh(const HalfKernel& kernel, Before before, After after, float* out) {
  Weighed a, b, c, d;
  const float* const middle = before(0);
  weigh_first(kernel.weight[0], middle, a);
  weigh_first(kernel.weight[0], middle + kWeighed, b);
  weigh_first(kernel.weight[0], middle + 2 * kWeighed, c);
  weigh_first(kernel.weight[0], middle + 3 * kWeighed, d);
  for (int i = 1; i <= kernel.radius; ++i) {
    const float* const one = before(i);
    const float* const other = after(i);
    weigh_pair(kernel.weight[i], one, other, a);
    weigh_pair(kernel.weight[i], one + kWeighed, other + kWeighed, b);
    weigh_pair(kernel.weight[i], one + 2 * kWeighed, other + 2 * kWeighed, c);
    weigh_pair(kernel.weight[i], one + 3 * kWeighed, other + 3 * kWeighed, d);
  }
  std::memcpy(out, &a, sizeof a);
  std::memcpy(out + kWeighed, &b, sizeof b);
  std::memcpy(out + 2 * kWeighed, &c, sizeof c);
  std::memcpy(out + 3 * kWeighed, &d, sizeof d);
}

MILLRACE_AUGMENT_TARGET void weigh_across(const HalfKernel& kernel, const float* row, float* __restrict out) {
  for (std::size_t x = 0; x < kStrip; x += 4 * kWeighed) {
    const float* const middle = row + kernel.radius + x;
    weigh(
        kernel, [=](int i) { return middle - i; }, [=](int i) { return middle + i; }, out + x);
  }
}

MILLRACE_AUGMENT_TARGET void weigh_down(const HalfKernel& kernel, const float* const* rows, Byte* __restrict out) {
  float all[kStrip];
  for (std::size_t x = 0; x < kStrip; x += 4 * kWeighed) {
    const float* const* const middle = rows + kernel.radius;
    weigh(
        kernel, [=](int i) { return middle[-i] + x; }, [=](int i) { return middle[i] + x; }, all + x);
  }
  // Adding 2^23 leaves no bits behind the point.
  constexpr float kWhole = 8388608.0F;
  for (std::size_t x = 0; x < kStrip; ++x) {
    const float whole = (all[x] + kWhole) - kWhole;
    out[x] = static_cast<Byte>(static_cast<int>(whole < 255.0F ? whole : 255.0F));
  }
}

// With those that are not among these loops.
// The sums of a part at a time stay in registers or near them.
MILLRACE_AUGMENT_TARGET void mix(const Weighted* planes, std::size_t planes_count, std::size_t padded, Byte* out) {
  constexpr std::size_t kPart = 64;
  float sums[kPart];
  for (std::size_t at = 0; at < padded; at += kPart) {
    for (std::size_t i = 0; i < kPart; ++i) sums[i] = 0;
    for (std::size_t plane = 0; plane < planes_count; ++plane) {
      const Byte* const in = planes[plane].plane + at;
      const float weight = planes[plane].weight;
      for (std::size_t i = 0; i < kPart; ++i) sums[i] += weight * static_cast<float>(static_cast<int>(in[i]));
    }
    for (std::size_t i = 0; i < kPart; ++i)
      out[at + i] = static_cast<Byte>(static_cast<int>(sums[i] < 255.0F ? sums[i] : 255.0F));
  }
}

constexpr Kernels kernels_with(decltype(Kernels::map) map, decltype(Kernels::hue) hue) {
  return {.split = split,
          .merge = merge,
          .map = map,
          .grey = grey,
          .widen_range = widen_range,
          .grey_sum = grey_sum,
          .prepare = prepare,
          .saturate = saturate,
          .hue = hue,
          .smooth = smooth,
          .blend = blend_planes,
          .copy_fixed = copy_fixed,
          .sample = sample,
          .box = box,
          .weigh_across = weigh_across,
          .weigh_down = weigh_down,
          .mirror = mirror,
          .mix = mix};
}
