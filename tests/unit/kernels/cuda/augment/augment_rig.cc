#include "tests/unit/kernels/cuda/augment/augment_rig.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "kernels/augment/augment.h"
#include "kernels/cpu/store.h"
#include "kernels/cpu/workspace.h"

namespace millrace {

using namespace kernels;
using cuda::Canvas;
using cuda::Erased;
using cuda::PadMode;

namespace {

constexpr std::byte kUntouched{0xA5};

std::size_t pixels_of(Size size) {
  return static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height);
}

std::vector<std::uint8_t> random_pixels(AugmentRandom& random, Size size) {
  std::vector<std::uint8_t> pixels(pixels_of(size) * 3);
  // Noise, few values, or a ramp with noise: histograms and sums differ.
  const unsigned kind = random() % 4, base = random();
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const auto value = static_cast<unsigned>(random());
    pixels[i] = static_cast<std::uint8_t>(kind < 2 ? value : kind == 2 ? base + value % 3 * 40 : i / 7 + value % 9);
  }
  return pixels;
}

U8View view_of(const std::vector<std::uint8_t>& pixels, Size size) {
  return {pixels.data(), size.width, size.height, 3, std::ptrdiff_t{size.width} * 3};
}

// Where numpy.pad() takes it from, found by going there. -1: the fill.
int walked(int position, int count, PadMode mode) {
  if (position >= 0 && position < count) return position;
  if (mode == PadMode::kConstant) return -1;
  int at = position < 0 ? 0 : count - 1, step = position < 0 ? 1 : -1;
  if (mode == PadMode::kEdge || (mode == PadMode::kReflect && count == 1)) return at;
  int left = position < 0 ? -position : position - count + 1;
  if (mode == PadMode::kSymmetric) --left;  // the edge itself comes twice
  for (; left > 0; --left) {
    if (at + step >= 0 && at + step < count) {
      at += step;
    } else {
      step = -step;
      if (mode == PadMode::kReflect) at += step;
    }
  }
  return at;
}

std::vector<std::uint8_t> padded(const AugmentCase& one) {
  if (!one.canvas) return one.pixels;
  const Canvas& canvas = *one.canvas;
  std::vector<std::uint8_t> out;
  for (int y = 0; y < one.size.height; ++y) {
    for (int x = 0; x < one.size.width; ++x) {
      const int from_x = walked(canvas.shown.left + x, canvas.resized.width, canvas.mode);
      const int from_y = walked(canvas.shown.top + y, canvas.resized.height, canvas.mode);
      for (int c = 0; c < 3; ++c) {
        const int at = 3 * ((from_y - canvas.inner.top) * one.inner.width + from_x - canvas.inner.left) + c;
        out.push_back(from_x < 0 || from_y < 0 ? canvas.fill[static_cast<std::size_t>(c)]
                                               : one.pixels.at(static_cast<std::size_t>(at)));
      }
    }
  }
  return out;
}

// As erase() of daemon/backend/cpu/making/augmentation.cc.
void erase_reference(const AugmentCase& one, const StoreSpec& store, std::vector<std::byte>& tensor) {
  const std::size_t channels = static_cast<std::size_t>(channel_count(store.channels)), bytes = bytes_of(store.dtype);
  const auto width = static_cast<std::size_t>(one.size.width), height = static_cast<std::size_t>(one.size.height);
  const auto write = [&](std::size_t channel, std::size_t pixel, float value) {
    const std::size_t stored = store.channels == ChannelOrder::kBgr ? 2 - channel : channel;
    std::byte* const at = tensor.data() + bytes * (store.layout == Layout::kNhwc ? pixel * channels + stored
                                                                                 : stored * width * height + pixel);
    const auto put = [&](auto element) { std::memcpy(at, &element, sizeof element); };
    if (store.dtype == DType::kUint8) put(static_cast<std::uint8_t>(std::nearbyint(value)));
    if (store.dtype == DType::kFloat16) put(to_float16(value));
    if (store.dtype == DType::kBfloat16) put(to_bfloat16(value));
    if (store.dtype == DType::kFloat32) put(value);
  };
  for (const Erased& erased : one.erased) {
    for (int y = erased.box.top; y < erased.box.top + erased.box.height; ++y) {
      for (int x = erased.box.left; x < erased.box.left + erased.box.width; ++x) {
        for (std::size_t c = 0; c < channels; ++c)
          write(c, static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x), erased.value[c]);
      }
    }
  }
}

float uniform(AugmentRandom& random, float from, float to) {
  return std::uniform_real_distribution<float>(from, to)(random);
}
double uniform_double(AugmentRandom& random, double from, double to) {
  return std::uniform_real_distribution<double>(from, to)(random);
}
int between(AugmentRandom& random, int from, int to) {
  return std::uniform_int_distribution<int>(from, to)(random);
}

// But sums.
Step random_kind(AugmentRandom& random) {
  return static_cast<Step>(random() % (static_cast<unsigned>(Step::kSolarizeAdd) + 1));
}

Box random_box(AugmentRandom& random, Size size) {
  const int width = between(random, 0, size.width), height = between(random, 0, size.height);
  return {between(random, 0, size.width - width), between(random, 0, size.height - height), width, height};
}

// Turned, scaled, sheared, moved; whole pixels; coordinates that fit no fixed point; and those that leave the picture.
std::array<double, 8> random_matrix(AugmentRandom& random, Size size) {
  const auto away = [&](double side) { return uniform_double(random, -side, side); };
  std::array<double, 8> m{1, 0, 0, 0, 1, 0, 0, 0};
  const auto put_moves = [&] {
    m[2] = away(size.width), m[5] = away(size.height);
    if (random() % 2 == 0) m[2] = std::floor(m[2]), m[5] = std::floor(m[5]);
  };
  switch (random() % 8) {
    case 0:
      put_moves();
      break;
    case 1:
      put_moves(), m[0] = away(3), m[4] = away(3);
      break;
    case 2:
      m[1] = away(0.5);
      break;
    case 3:
      m[2] = away(1e5), m[0] = away(1e4), m[1] = away(10), m[3] = away(2), m[4] = away(2);
      break;
    case 4:
      m[2] = random() % 2 == 0 ? 40000 : -40000, m[0] = -m[2] / std::max(1, size.width), m[3] = away(0.2);
      break;
    default: {
      const double angle = away(3.2), zoom = uniform_double(random, 0.5, 1.5);
      m[0] = zoom * std::cos(angle), m[1] = zoom * std::sin(angle), m[3] = -m[1], m[4] = m[0];
      m[2] = size.width / 2.0 * (1 - m[0]) - m[1] * size.height / 2.0 + away(3);
      m[5] = size.height / 2.0 * (1 - m[4]) - m[3] * size.width / 2.0 + away(3);
    }
  }
  if (random() % 2 == 0) m[6] = away(0.01), m[7] = away(0.01);
  if (random() % 16 == 0) m[6] = -2, m[2] = -0.5, m[5] = -0.5;  // 0 / 0 somewhere, perhaps
  return m;
}

}  // namespace

cuda::TensorSpec store_as_tensor(const StoreSpec& store) {
  cuda::TensorSpec spec{};
  spec.layout = store.layout;
  spec.channels = store.channels;
  spec.element_bytes = static_cast<std::uint8_t>(bytes_of(store.dtype));
  if (store.patches) {
    const auto side = [](int value) { return static_cast<std::uint16_t>(value); };
    const Patches& patches = *store.patches;
    spec.patches = {side(patches.width), side(patches.height), side(patches.merge), side(patches.temporal)};
  }
  return spec;
}

std::vector<std::uint32_t> AugmentBatch::store_values(const StoreTable& table) {
  std::vector<std::uint32_t> values;
  for (int c = 0; c < table.channels(); ++c)
    values.insert(values.end(), std::begin(table.plane(c).values), std::end(table.plane(c).values));
  return values;
}

std::string_view AugmentBatch::add(const AugmentCase& one) {
  const cuda::PictureRequest request{.image = static_cast<std::uint32_t>(status_.size()),
                                     .picture = pictures_.size(),
                                     .output = tensors_.size(),
                                     .inner = one.inner,
                                     .size = one.size,
                                     .canvas = one.canvas,
                                     .operations = one.operations,
                                     .erased = one.erased};
  const std::string_view reason = append_picture(request, table_.spec(), plan_);
  if (!reason.empty()) return reason;
  pictures_.insert(pictures_.end(), one.pixels.begin(), one.pixels.end());
  tensors_.resize(tensors_.size() + table_.image_bytes(one.size), kUntouched);
  status_.push_back(cuda::Status::kDone);
  return "";
}

std::span<const std::byte> AugmentBatch::tensor(std::size_t job) const {
  const cuda::PictureJob& of = plan_.jobs[job];
  return std::span(tensors_).subspan(of.output, table_.image_bytes({of.width, of.height}));
}

std::vector<std::byte> augmented_tensor(const AugmentCase& one, const StoreSpec& store, Target target) {
  std::vector<std::uint8_t> picture = padded(one);
  const MutableU8View view{picture.data(), one.size.width, one.size.height, 3, std::ptrdiff_t{one.size.width} * 3};
  if (!one.operations.empty()) {
    Augmenter augmenter(target);
    TimeLimit limit;
    if (!augmenter.apply(view, one.operations, limit, view)) throw std::logic_error("no time limit was set");
  }
  const StoreTable table(store);
  std::vector<std::byte> tensor(table.image_bytes(one.size));
  Workspace workspace(target);
  ImageStore rows(table, tensor, one.size, 3, Flip::kNone, workspace);
  for (int y = 0; y < one.size.height; ++y) rows(y, view_of(picture, one.size).row(y));
  erase_reference(one, store, tensor);
  return tensor;
}

Operation plain_step(Step step, float factor, int value) {
  Operation operation;
  operation.step = step;
  operation.factor = factor;
  operation.value = value;
  return operation;
}

Operation random_step(AugmentRandom& random, Step step, Size size) {
  Operation operation = plain_step(step, uniform(random, 0, 3), between(random, 0, 3));
  if (random() % 8 == 0) operation.factor = uniform(random, -1e3F, 1e6F);
  if (random() % 8 == 0) operation.factor = static_cast<float>(between(random, 0, 1));
  for (std::uint8_t& value : operation.fill) value = static_cast<std::uint8_t>(random());
  const int shorter = std::min(size.width, size.height);
  switch (step) {
    case Step::kPosterize:
      operation.value = between(random, 1, 8);
      break;
    case Step::kSolarize:
      operation.factor = uniform(random, -5, 260);
      break;
    case Step::kSolarizeAdd:
      operation.factor = uniform(random, -5, 260);
      operation.value = between(random, -255, 255);
      break;
    case Step::kHue:
      operation.value = between(random, -300, 300);
      break;
    case Step::kErase:
      operation.box = random_box(random, size);
      break;
    case Step::kGaussianBlur:
      operation.value = 2 * between(random, 0, std::min(random() % 4 == 0 ? 49 : 5, shorter - 1)) + 1;
      operation.factor = uniform(random, 0.01F, 8);
      break;
    case Step::kPillowBlur:
      operation.factor = uniform(random, 0.001F, random() % 4 == 0 ? 100 : 3);
      break;
    case Step::kAffine:
    case Step::kPerspective:
      operation.sampling = static_cast<Sampling>(random() % 3);
      operation.matrix = random_matrix(random, size);
      break;
    default:
      break;
  }
  return operation;
}

std::vector<Operation> random_steps(AugmentRandom& random, Size size, std::size_t count) {
  std::vector<Operation> steps;
  Size now = size;
  while (steps.size() < count) {
    steps.push_back(random_step(random, random_kind(random), now));
    now = size_after(now, {&steps.back(), 1});
  }
  if (now != size) steps.push_back(plain_step(Step::kQuarterTurns, 1, 1));
  return steps;
}

std::vector<Operation> random_sum(AugmentRandom& random, Size size, std::size_t count) {
  std::vector<Operation> sum{plain_step(Step::kMixStart, uniform(random, 0, 1))};
  int added = 0;
  const auto add = [&] {
    sum.push_back(plain_step(Step::kMixAdd, uniform(random, 0, 1)));
    ++added;
  };
  for (; count > 0; --count) {
    sum.push_back(random_step(random, random_kind(random), size));
    if (sum.back().step == Step::kQuarterTurns) sum.back().value &= 2;  // a sum's pictures are of one size
    if (random() % 3 == 0 && added < kMostMixed) add();
  }
  // What comes behind the last picture is in none.
  if (added == 0 || (added < kMostMixed && random() % 4 != 0)) add();
  sum.push_back(plain_step(Step::kMixEnd, random() % 2 == 0 ? 1.0F : uniform(random, 0, 1)));
  return sum;
}

AugmentCase random_picture(AugmentRandom& random, Size size) {
  return {size, size, std::nullopt, {}, {}, random_pixels(random, size)};
}

void put_random_canvas(AugmentRandom& random, AugmentCase& one) {
  const int far = random() % 3 == 0 ? 200 : 10;
  Canvas canvas{.mode = static_cast<PadMode>(random() % 4)};
  for (std::uint8_t& value : canvas.fill) value = static_cast<std::uint8_t>(random());
  canvas.resized = {between(random, 1, 40), between(random, 1, 40)};
  canvas.shown = {between(random, -far, far), between(random, -far, far), one.size.width, one.size.height};
  canvas.inner = whole(canvas.resized);
  // No more of it than is shown, where that is simple.
  if (canvas.mode == PadMode::kConstant && random() % 2 == 0) {
    const auto cut = [](int from, int count, int side, int& first, int& length) {
      first = std::clamp(from, 0, side);
      length = std::clamp(from + count, 0, side) - first;
    };
    cut(canvas.shown.left, canvas.shown.width, canvas.resized.width, canvas.inner.left, canvas.inner.width);
    cut(canvas.shown.top, canvas.shown.height, canvas.resized.height, canvas.inner.top, canvas.inner.height);
  }
  one.inner = {canvas.inner.width, canvas.inner.height};
  one.canvas = canvas;
  one.pixels = random_pixels(random, one.inner);
}

std::vector<Erased> random_erased(AugmentRandom& random, Size size, DType dtype) {
  std::vector<Erased> all(random() % 4);
  for (Erased& erased : all) {
    erased.box = random_box(random, size);
    for (float& value : erased.value) value = dtype == DType::kUint8 ? uniform(random, 0, 255) : uniform(random, -3, 3);
  }
  return all;
}

StoreSpec random_store(AugmentRandom& random) {
  StoreSpec store{.dtype = static_cast<DType>(random() % 4),
                  .layout = static_cast<Layout>(random() % 2),
                  .channels = static_cast<ChannelOrder>(random() % 3),
                  .range = static_cast<ValueRange>(random() % 2)};
  if (store.dtype != DType::kUint8 && random() % 2 == 0)
    store.normalise = Normalise{{0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F}};
  return store;
}

}  // namespace millrace
