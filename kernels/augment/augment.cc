#include "kernels/augment/augment.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/augment/blur.h"
#include "kernels/augment/geometry.h"
#include "kernels/augment/kernels.h"
#include "kernels/augment/mixture.h"
#include "kernels/augment/plane_memory.h"
#include "kernels/augment/pointwise.h"
#include "kernels/augment/tables.h"
#include "kernels/augment/whole_pixels.h"

namespace millrace::kernels {

using namespace augment;

namespace {

// Reads the clock between operations. What comes after the last of them is the last one's.
class StepClock {
 public:
  StepClock(std::span<const Operation> operations, StepTimes* took)
      : last_(operations.empty() ? nullptr : &operations.back()),
        took_(took),
        since_(took == nullptr ? Clock::time_point{} : Clock::now()) {}
  StepClock(const StepClock&) = delete;
  StepClock& operator=(const StepClock&) = delete;
  ~StepClock() {
    if (last_ != nullptr) done(*last_);
  }

  void done(const Operation& operation) {
    if (took_ == nullptr) return;
    const Clock::time_point now = Clock::now();
    (*took_)[static_cast<std::size_t>(operation.step)] += now - std::exchange(since_, now);
  }

 private:
  using Clock = std::chrono::steady_clock;

  const Operation* const last_;
  StepTimes* const took_;
  Clock::time_point since_;
};

}  // namespace

class Augmenter::Work {
 public:
  explicit Work(Target target) : kernels_(kernels_of(target)) {}

  bool apply(const U8View& in, std::span<const Operation> operations, TimeLimit& limit, const MutableU8View& out,
             StepTimes* took) {
    StepClock clock(operations, took);
    prepare(in.size());
    const WholePixels whole(kernels_, planes_.plane[0]);
    if (const auto table = common_table(operations)) return whole.map(in, *table, limit, out);
    if (are_vertical_flips(operations) && operations.size() % 2 == 1) return whole.flip(in, limit, out);
    in_ = &in;
    for (const Operation& operation : operations) {
      if (limit.is_over_after(count_) || !apply(operation, limit)) return false;
      clock.done(operation);
    }
    if (out.stride == static_cast<std::ptrdiff_t>(width() * 3)) {
      return for_parts(limit, [&](const Planes& part, std::size_t at, std::size_t count) {
        kernels_.merge(part, 0, count, out.data + 3 * at);
      });
    }
    if (!flush(limit)) return false;
    for (int y = 0; y < size_.height; ++y) kernels_.merge(planes_, row_at(y), width(), out.row(y));
    return true;
  }

  std::size_t memory() const { return memory_.bytes() + mixture_.memory(); }

 private:
  std::size_t width() const { return static_cast<std::size_t>(size_.width); }
  std::size_t row_at(int y) const { return static_cast<std::size_t>(y) * width(); }

  void prepare(Size size) {
    size_ = size;
    count_ = width() * static_cast<std::size_t>(size_.height);
    padded_ = padded(count_) + kAlignment;  // what is done behind the end of a part may be behind the picture's
    memory_.reserve(padded_ * 6 + kSlack);
    planes_ = memory_.planes(0, padded_);
    others_ = memory_.planes(3, padded_);
    mixture_.prepare(padded_);
    waiting_.clear();
  }

  // The steps that wait, on one part of the picture after another, each followed by then(part's planes, its first
  // pixel, its pixels). The first time, parts come from the picture itself. False when the limit was over.
  template <class Then>
  bool for_parts(TimeLimit& limit, Then then) {
    constexpr std::size_t kPart = 4096;
    const U8View* const in = std::exchange(in_, nullptr);
    const bool is_whole = in != nullptr && in->stride == static_cast<std::ptrdiff_t>(width() * 3);
    if (in != nullptr && !is_whole) {
      for (int y = 0; y < size_.height; ++y) kernels_.split(in->row(y), width(), planes_, row_at(y));
    }
    for (std::size_t at = 0; at < count_; at += kPart) {
      const std::size_t count = std::min(kPart, count_ - at);
      if (limit.is_over_after(count)) return false;
      const Planes part{{planes_.plane[0] + at, planes_.plane[1] + at, planes_.plane[2] + at}};
      if (is_whole) kernels_.split(in->data + 3 * at, count, part, 0);
      waiting_.apply(kernels_, part, padded(count));
      then(part, at, count);
    }
    waiting_.clear();
    return true;
  }

  bool flush(TimeLimit& limit) {
    if (in_ == nullptr && waiting_.is_empty()) return true;
    return for_parts(limit, [](const Planes&, std::size_t, std::size_t) {});
  }

  bool contrast(float factor, TimeLimit& limit) {
    std::uint64_t sum = 0;
    const bool is_done = for_parts(
        limit, [&](const Planes& part, std::size_t, std::size_t count) { sum += kernels_.grey_sum(part, count); });
    const double mean = static_cast<double>(sum) / static_cast<double>(count_);
    waiting_.add(blend_table(static_cast<int>(mean + 0.5), factor));
    return is_done;
  }

  bool equalize(TimeLimit& limit) {
    for (Histogram& histogram : histograms_) histogram.clear();
    const bool is_done = for_parts(limit, [&](const Planes& part, std::size_t, std::size_t count) {
      for (std::size_t c = 0; c < 3; ++c) histograms_[c].add(part.plane[c], count);
    });
    std::array<Table, 3>& tables = waiting_.tables();
    for (std::size_t c = 0; c < 3; ++c) Pointwise::chain(tables[c], equalize_table(histograms_[c].counts()));
    return is_done;
  }

  bool stretch(TimeLimit& limit) {
    Byte least[3] = {255, 255, 255}, most[3] = {0, 0, 0};
    const bool is_done = for_parts(limit, [&](const Planes& part, std::size_t, std::size_t count) {
      for (std::size_t c = 0; c < 3; ++c) kernels_.widen_range(part.plane[c], count, &least[c], &most[c]);
    });
    std::array<Table, 3>& tables = waiting_.tables();
    for (std::size_t c = 0; c < 3; ++c) Pointwise::chain(tables[c], autocontrast_table(least[c], most[c]));
    return is_done;
  }

  bool apply(const Operation& operation, TimeLimit& limit) {
    if (operation.step == Step::kMixEnd) {
      waiting_.clear();  // what came behind the last kMixAdd is in no picture of the sum
      mixture_.end(kernels_, operation.factor, planes_);
      return !limit.is_over_after(count_ * mixture_.count());
    }
    mixture_.restore(planes_);
    if (maps_values(operation.step)) {
      waiting_.add(value_table(operation));
      return true;
    }
    switch (operation.step) {
      case Step::kSaturation:
        waiting_.add_saturation(kernels_, operation.factor);
        return true;
      case Step::kHue:
        waiting_.add_hue(static_cast<Byte>(operation.value & 0xFF));
        return true;
      case Step::kGrey:
        waiting_.add_grey();
        return true;
      case Step::kContrast:
        return contrast(operation.factor, limit);
      case Step::kAutocontrast:
        return stretch(limit);
      case Step::kEqualize:
        return equalize(limit);
      case Step::kAffine:
      case Step::kPerspective:
        if (!moves_whole_pixels(operation)) return transform_rows(operation, limit);
        [[fallthrough]];
      default:
        return flush(limit) && move(operation, limit);
    }
  }

  bool move(const Operation& operation, TimeLimit& limit) {
    switch (operation.step) {
      case Step::kErase:
        erase(operation);
        return true;
      case Step::kMixStart:
        mixture_.start(planes_, padded(count_), operation.factor);
        return true;
      case Step::kMixAdd:
        mixture_.add(planes_, operation.factor);
        return true;
      case Step::kPillowBlur:
        return pillow_blur(kernels_, operation.factor, size_, limit, planes_, others_);
      case Step::kGaussianBlur:
        if (!gaussian_blur(kernels_, operation, planes_, size_, limit, others_)) return false;
        break;
      case Step::kSharpness:
        if (!sharpen(operation.factor, limit)) return false;
        break;
      case Step::kFlipHorizontal:
        for_rows([&](const Byte* in, int y, Byte* out) { kernels_.mirror(in + row_at(y), width(), out + row_at(y)); });
        break;
      case Step::kFlipVertical:
        for_rows([&](const Byte* in, int y, Byte* out) {
          std::memcpy(out + row_at(size_.height - 1 - y), in + row_at(y), width());
        });
        break;
      case Step::kQuarterTurns:
        if (operation.value == 0) return true;
        if (!turn(kernels_, planes_, size_, operation.value, limit, others_)) return false;
        if (operation.value != 2) std::swap(size_.width, size_.height);
        break;
      default:
        if (!shift(operation, planes_, size_, limit, others_)) return false;
    }
    std::swap(planes_, others_);
    return true;
  }

  // In the memory of the other planes the picture is rows again.
  bool transform_rows(const Operation& operation, TimeLimit& limit) {
    Byte* const rows = others_.plane[0];
    return for_parts(limit, [&](const Planes& part, std::size_t at,
                                std::size_t count) { kernels_.merge(part, 0, count, rows + 3 * at); }) &&
           transform(kernels_, operation, size_, limit, rows, planes_);
  }

  template <class Function>
  void for_rows(Function function) {
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < size_.height; ++y) function(planes_.plane[c], y, others_.plane[c]);
    }
  }

  // Rows that follow one another are smoothed as one, and their first and last pixels put back.
  bool sharpen(float factor, TimeLimit& limit) {
    Blend blend;
    kernels_.prepare(factor, blend);
    const int part = std::max(1, 4096 / size_.width);
    for (int top = 0; top < size_.height; top += part) {
      const int bottom = std::min(top + part, size_.height);
      const int first = std::max(top, 1), past = std::min(bottom, size_.height - 1);
      const std::size_t count = row_at(bottom - top);
      if (limit.is_over_after(count)) return false;
      for (std::size_t c = 0; c < 3; ++c) {
        const Byte* const in = planes_.plane[c];
        Byte* const out = others_.plane[c];
        if (top == 0) std::memcpy(out, in, width());
        if (bottom == size_.height) std::memcpy(out + row_at(bottom - 1), in + row_at(bottom - 1), width());
        if (first < past) {
          const Byte* const row = in + row_at(first);
          kernels_.smooth(row - width(), row, row + width(), row_at(past - first), out + row_at(first));
          for (int y = first; y < past; ++y) {
            out[row_at(y)] = in[row_at(y)];
            out[row_at(y + 1) - 1] = in[row_at(y + 1) - 1];
          }
        }
        kernels_.blend(blend, in + row_at(top), padded(count), out + row_at(top));
      }
    }
    return true;
  }

  void erase(const Operation& operation) {
    const Box& box = operation.box;
    for (std::size_t c = 0; c < 3; ++c) {
      for (int y = box.top; y < box.top + box.height; ++y) {
        std::memset(planes_.plane[c] + row_at(y) + box.left, operation.fill[c], static_cast<std::size_t>(box.width));
      }
    }
  }

  const Kernels& kernels_;
  PlaneMemory memory_;
  Size size_;
  std::size_t count_ = 0, padded_ = 0;
  Planes planes_{}, others_{};
  Pointwise waiting_;
  Mixture mixture_;
  Histogram histograms_[3];
  const U8View* in_ = nullptr;  // until the planes have its pixels
};

Augmenter::Augmenter(Target target) : work_(std::make_unique<Work>(target)) {}
Augmenter::~Augmenter() = default;
Augmenter::Augmenter(Augmenter&&) noexcept = default;
Augmenter& Augmenter::operator=(Augmenter&&) noexcept = default;

bool Augmenter::apply(const U8View& in, std::span<const Operation> operations, TimeLimit& limit,
                      const MutableU8View& out, StepTimes* took) {
  return work_->apply(in, operations, limit, out, took);
}

std::size_t Augmenter::memory() const {
  return work_->memory();
}

}  // namespace millrace::kernels
