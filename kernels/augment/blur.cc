#include "kernels/augment/blur.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/augment/geometry.h"

namespace millrace::kernels::augment {
namespace {

constexpr int kPasses = 3;

// Of the box whose three passes have this deviation: floats where Pillow (BoxBlur.c) has them, and doubles.
float box_radius(float deviation) {
  const float variance = deviation * deviation / static_cast<float>(kPasses);
  const auto length = static_cast<float>(std::sqrt(12.0 * static_cast<double>(variance) + 1.0));
  const auto whole = static_cast<float>(std::floor((static_cast<double>(length) - 1.0) / 2.0));
  float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  part /= 6 * (variance - (whole + 1) * (whole + 1));
  return whole + part;
}

BoxPass box_pass(float radius) {
  constexpr std::uint32_t kOne = std::uint32_t{1} << 24;
  BoxPass pass{};
  pass.radius = static_cast<int>(radius);
  pass.inner = static_cast<std::uint32_t>(static_cast<float>(kOne) / (radius * 2 + 1));
  pass.outer = (kOne - static_cast<std::uint32_t>(pass.radius * 2 + 1) * pass.inner) / 2;
  return pass;
}

bool box_down(const Kernels& kernels, const BoxPass& pass, const Planes& in, Size size, TimeLimit& limit,
              const Planes& out) {
  const auto width = static_cast<std::size_t>(size.width);
  for (int c = 0; c < 3; ++c) {
    for (std::size_t left = 0; left < width; left += kStrip) {
      const std::size_t columns = std::min(kStrip, width - left);
      if (limit.is_over_after(columns * static_cast<std::size_t>(size.height + pass.radius))) return false;
      kernels.box(pass, in.plane[c] + left, columns, width, size.height, out.plane[c] + left);
    }
  }
  return true;
}

int reflected(int at, int side) {
  return at < 0 ? -at : at < side ? at : 2 * (side - 1) - at;
}

// Down a strip of kStrip columns.
class Strip {
 public:
  Strip(const Kernels& kernels, const HalfKernel& kernel, Size size, int left)
      : kernels_(kernels),
        kernel_(kernel),
        size_(size),
        left_(left),
        columns_(std::min<int>(kStrip, size.width - left)) {}

  bool blur(const Byte* in, TimeLimit& limit, Byte* out) {
    const int side = 2 * kernel_.radius + 1;
    for (int i = 0; i + 1 < side; ++i) across(in, i);
    for (int y = 0; y < size_.height; ++y) {
      if (limit.is_over_after(static_cast<std::uint64_t>(columns_ * (1 + side / 4)))) return false;
      across(in, y + side - 1);
      const float* rows[kLargestKernel];
      for (int i = 0; i < side; ++i) rows[i] = across_[(y + i) % kLargestKernel];
      Byte down[kStrip];
      kernels_.weigh_down(kernel_, rows, down);
      std::memcpy(out + at(y, left_), down, static_cast<std::size_t>(columns_));
    }
    return true;
  }

 private:
  std::size_t at(int y, int x) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(size_.width) + static_cast<std::size_t>(x);
  }

  // Row `number` of the picture with the kernel's radius more above.
  void across(const Byte* in, int number) {
    const Byte* const row = in + at(reflected(number - kernel_.radius, size_.height), 0);
    const int first = left_ - kernel_.radius, past = left_ + columns_ + kernel_.radius;
    float padded[kStrip + kLargestKernel]{};
    const int inner = std::max(first, 0), outer = std::min(past, size_.width);
    for (int x = first; x < inner; ++x) padded[x - first] = row[reflected(x, size_.width)];
    for (int x = inner; x < outer; ++x) padded[x - first] = row[x];
    for (int x = outer; x < past; ++x) padded[x - first] = row[reflected(x, size_.width)];
    kernels_.weigh_across(kernel_, padded, across_[number % kLargestKernel]);
  }

  const Kernels& kernels_;
  const HalfKernel& kernel_;
  Size size_;
  int left_, columns_;
  alignas(64) float across_[kLargestKernel][kStrip];
};

}  // namespace

std::optional<BoxPass> pillow_pass(float radius) {
  const float box = box_radius(radius);
  if (box == 0) return std::nullopt;
  return box_pass(box);
}

// Floats, but for the sum of the weights and their exponents.
HalfKernel half_kernel(int side, float deviation) {
  HalfKernel kernel{side / 2, {}};
  double sum = 0;
  for (int i = 0; i <= kernel.radius; ++i) {
    const float away = static_cast<float>(i) / deviation;
    kernel.weight[i] = static_cast<float>(std::exp(static_cast<double>(-0.5F * (away * away))));
    sum += static_cast<double>(kernel.weight[i]) * (i == 0 ? 1 : 2);
  }
  for (float& weight : kernel.weight) weight /= static_cast<float>(sum);
  return kernel;
}

bool pillow_blur(const Kernels& kernels, float radius, Size size, TimeLimit& limit, const Planes& planes,
                 const Planes& others) {
  const std::optional<BoxPass> pass = pillow_pass(radius);
  if (!pass) return true;
  const Size turned{size.height, size.width};
  for (const Size each : {turned, size}) {
    for (int c = 0; c < 3; ++c) {
      const Size before{each.height, each.width};
      if (!transpose(planes.plane[c], before.width, before, limit, others.plane[c], each.width)) return false;
    }
    if (!box_down(kernels, *pass, others, each, limit, planes) ||
        !box_down(kernels, *pass, planes, each, limit, others) ||
        !box_down(kernels, *pass, others, each, limit, planes)) {
      return false;
    }
  }
  return true;
}

bool gaussian_blur(const Kernels& kernels, const Operation& operation, const Planes& in, Size size, TimeLimit& limit,
                   const Planes& out) {
  const HalfKernel kernel = half_kernel(operation.value, operation.factor);
  for (int c = 0; c < 3; ++c) {
    for (int left = 0; left < size.width; left += static_cast<int>(kStrip)) {
      Strip strip(kernels, kernel, size, left);
      if (!strip.blur(in.plane[c], limit, out.plane[c])) return false;
    }
  }
  return true;
}

}  // namespace millrace::kernels::augment
