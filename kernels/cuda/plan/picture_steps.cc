#include "kernels/cuda/plan/picture_steps.h"

#include <bit>
#include <cmath>
#include <optional>

#include "kernels/augment/blur.h"
#include "kernels/augment/geometry.h"
#include "kernels/augment/targets/hue_below.h"

namespace millrace::kernels::cuda {
namespace {

std::uint32_t fill_pixel(const std::array<std::uint8_t, 3>& fill) {
  return fill[0] | std::uint32_t{fill[1]} << 8 | std::uint32_t{fill[2]} << 16;
}

bool maps_values(AugmentKind kind) {
  return kind <= AugmentKind::kEqualize;
}

std::int32_t fixed(double value) {
  return static_cast<std::int32_t>(kernels::augment::to_fixed(value));
}

}  // namespace

void PictureSteps::put(float value) {
  plan_.tables.push_back(std::bit_cast<std::uint32_t>(value));
}

void PictureSteps::put(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  plan_.tables.push_back(static_cast<std::uint32_t>(bits));
  plan_.tables.push_back(static_cast<std::uint32_t>(bits >> 32));
}

AugmentStep& PictureSteps::append(AugmentKind kind, std::uint8_t to) {
  AugmentStep step{};
  step.kind = kind;
  step.from = picture_;
  step.to = to;
  step.width = static_cast<std::uint16_t>(size_.width);
  step.height = static_cast<std::uint16_t>(size_.height);
  step.table = next_word();
  plan_.steps.push_back(step);
  buffers_.release(picture_);
  picture_ = to;
  return plan_.steps.back();
}

AugmentStep& PictureSteps::push(AugmentKind kind) {
  return append(kind, buffers_.take());
}

AugmentStep& PictureSteps::push_in_place(AugmentKind kind) {
  if (buffers_.is_kept(picture_)) return push(kind);
  buffers_.keep(picture_);
  return append(kind, picture_);
}

// A table alone is chained to the one before, which then changes no pixel. A sum that keeps the picture in between needs
// its pixels.
void PictureSteps::add_values(AugmentKind kind, float factor, std::int32_t value) {
  const bool is_table = kind < AugmentKind::kContrast, is_first = plan_.steps.size() == first_;
  const bool is_chained = is_table && !is_first && maps_values(plan_.steps.back().kind) && !buffers_.is_kept(picture_);
  AugmentStep& step = push_in_place(kind);
  step.factor = factor;
  step.value = value;
  if (!is_chained) return;
  AugmentStep& before = *(plan_.steps.end() - 2);
  before.is_held = 1;
  step.chained = 1;
  step.from = before.from;
}

void PictureSteps::add_move(int first, int column, int row, Size result) {
  size_ = result;
  std::ranges::copy(std::array{first, column, row}, push(AugmentKind::kMove).place);
}

// Counter-clockwise.
void PictureSteps::add_turns(int turns) {
  const auto [width, height] = size_;
  if (turns == 1) add_move(width - 1, width, -1, {height, width});
  if (turns == 2) add_move(width * height - 1, -1, -width, size_);
  if (turns == 3) add_move((height - 1) * width, -width, 1, {height, width});
}

void PictureSteps::add_transform(const Operation& operation) {
  const auto& m = operation.matrix;
  if (kernels::augment::moves_whole_pixels(operation)) {
    const auto side = [](double offset, int length) {
      return static_cast<int>(std::clamp<double>(offset, -length, length));
    };
    AugmentStep& step = push(AugmentKind::kShift);
    step.place[0] = side(m[2], size_.width);
    step.place[1] = side(m[5], size_.height);
  } else if (operation.step == Step::kPerspective || operation.sampling != Sampling::kNearest) {
    add_sample(operation);
  } else if (m[1] == 0 && m[3] == 0) {
    add_scale(operation);
  } else if (kernels::augment::fits_fixed(operation, size_)) {
    add_fixed(operation);
  } else {
    add_summed(operation);
  }
  plan_.steps.back().fill = fill_pixel(operation.fill);
}

// Coordinates of columns and rows are summed up, as Pillow does.
void PictureSteps::add_scale(const Operation& operation) {
  const auto& m = operation.matrix;
  push(AugmentKind::kScale);
  const auto put_side = [&](double at, double by, int side) {
    for (int i = 0; i < side; ++i, at += by) {
      const bool is_inside = at >= 0.0 && at < side;
      plan_.tables.push_back(is_inside ? static_cast<std::uint32_t>(at) : kNowhere);
    }
  };
  put_side(m[2] + m[0] * 0.5, m[0], size_.width);
  put_side(m[5] + m[4] * 0.5, m[4], size_.height);
}

void PictureSteps::add_fixed(const Operation& operation) {
  const auto& m = operation.matrix;
  const std::array place{fixed(m[2] + m[0] * 0.5 + m[1] * 0.5),
                         fixed(m[5] + m[3] * 0.5 + m[4] * 0.5),
                         fixed(m[0]),
                         fixed(m[3]),
                         fixed(m[1]),
                         fixed(m[4])};
  std::ranges::copy(place, push(AugmentKind::kFixed).place);
}

// Rows' first coordinates are summed up here, those along a row by its thread.
void PictureSteps::add_summed(const Operation& operation) {
  const auto& m = operation.matrix;
  push(AugmentKind::kSummed);
  put(m[0]);
  put(m[3]);
  double x = m[2] + m[1] * 0.5 + m[0] * 0.5, y = m[5] + m[4] * 0.5 + m[3] * 0.5;
  for (int row = 0; row < size_.height; ++row, x += m[1], y += m[4]) {
    put(x);
    put(y);
  }
}

void PictureSteps::add_sample(const Operation& operation) {
  AugmentStep& step = push(AugmentKind::kSample);
  step.sampling = operation.sampling;
  step.perspective = operation.step == Step::kPerspective ? 1 : 0;
  for (const double value : operation.matrix) put(value);
}

void PictureSteps::add_gaussian_blur(const Operation& operation) {
  const kernels::augment::HalfKernel kernel = kernels::augment::half_kernel(operation.value, operation.factor);
  const std::array planes{buffers_.take(), buffers_.take(), buffers_.take()};
  AugmentStep& across = push_in_place(AugmentKind::kAcross);  // whose result is in the planes alone
  across.value = kernel.radius;
  std::ranges::copy(planes, across.planes);
  const std::uint32_t table = across.table;
  AugmentStep& down = push_in_place(AugmentKind::kDown);
  down.value = kernel.radius;
  down.table = table;
  std::ranges::copy(planes, down.planes);
  for (int i = 0; i <= kernel.radius; ++i) put(kernel.weight[i]);
  for (const std::uint8_t plane : planes) buffers_.release(plane);
}

// Across first, as columns of the turned picture.
void PictureSteps::add_pillow_blur(float radius) {
  const std::optional<kernels::augment::BoxPass> pass = kernels::augment::pillow_pass(radius);
  if (!pass) return;
  for (int side = 0; side < 2; ++side) {
    add_move(0, size_.width, 1, {size_.height, size_.width});
    for (int i = 0; i < 3; ++i) {
      AugmentStep& step = push(AugmentKind::kBox);
      step.place[0] = pass->radius;
      step.place[1] = static_cast<std::int32_t>(pass->inner);
      step.place[2] = static_cast<std::int32_t>(pass->outer);
    }
  }
}

// Into the first picture's buffer: each pixel depends on the same one of all pictures. Without a step since the last
// one was kept, `picture_` is the first picture, too.
void PictureSteps::add_mix(float factor) {
  buffers_.release(picture_);
  picture_ = kept_.front().buffer;
  for (std::size_t i = 1; i < kept_.size(); ++i) buffers_.release(kept_[i].buffer);
  AugmentStep& step = push_in_place(AugmentKind::kMix);
  step.factor = factor;
  step.value = static_cast<std::int32_t>(kept_.size());
  for (const Kept& kept : kept_) {
    plan_.tables.push_back(kept.buffer);
    put(kept.weight);
  }
  kept_.clear();
}

void PictureSteps::add(const Operation& operation) {
  const auto [width, height] = size_;
  switch (operation.step) {
    case Step::kInvert:
      return add_values(AugmentKind::kSolarize, 0, 0);
    case Step::kPosterize:
      return add_values(AugmentKind::kPosterize, 0, 0xFF << (8 - operation.value));
    case Step::kSolarize:
      return add_values(AugmentKind::kSolarize, operation.factor, 0);
    case Step::kSolarizeAdd:
      return add_values(AugmentKind::kSolarizeAdd, operation.factor, operation.value);
    case Step::kBrightness:
      return add_values(AugmentKind::kBrightness, operation.factor, 0);
    case Step::kContrast:
      return add_values(AugmentKind::kContrast, operation.factor, 0);
    case Step::kAutocontrast:
      return add_values(AugmentKind::kAutocontrast, 0, 0);
    case Step::kEqualize:
      return add_values(AugmentKind::kEqualize, 0, 0);
    case Step::kSaturation:
      push_in_place(AugmentKind::kSaturation).factor = operation.factor;
      return;
    case Step::kHue: {
      push_in_place(AugmentKind::kHue).value = operation.value & 0xFF;
      std::array<std::uint32_t, 8> below{};
      for (int h = 0; h < 255; ++h)
        below[static_cast<std::size_t>(h / 32)] |= std::uint32_t{kernels::augment::falls_below(h)}
                                                   << static_cast<unsigned>(h % 32);
      plan_.tables.insert(plan_.tables.end(), below.begin(), below.end());
      return;
    }
    case Step::kGrey:
      push_in_place(AugmentKind::kGrey);
      return;
    case Step::kSharpness:
      push(AugmentKind::kSharpness).factor = operation.factor;
      return;
    case Step::kFlipHorizontal:
      return add_move(width - 1, -1, width, size_);
    case Step::kFlipVertical:
      return add_move((height - 1) * width, 1, -width, size_);
    case Step::kQuarterTurns:
      return add_turns(operation.value);
    case Step::kAffine:
    case Step::kPerspective:
      return add_transform(operation);
    case Step::kErase: {
      const Box& box = operation.box;
      AugmentStep& step = push_in_place(AugmentKind::kErase);
      std::ranges::copy(std::array{box.left, box.top, box.left + box.width, box.top + box.height}, step.place);
      step.fill = fill_pixel(operation.fill);
      return;
    }
    case Step::kGaussianBlur:
      return add_gaussian_blur(operation);
    case Step::kPillowBlur:
      return add_pillow_blur(operation.factor);
    case Step::kMixStart:
      buffers_.keep(picture_);
      kept_.push_back({picture_, operation.factor});
      return;
    case Step::kMixAdd:
      kept_.push_back({picture_, operation.factor});
      picture_ = kept_.front().buffer;
      buffers_.keep(picture_);
      return;
    case Step::kMixEnd:
      return add_mix(operation.factor);
  }
}

}  // namespace millrace::kernels::cuda
