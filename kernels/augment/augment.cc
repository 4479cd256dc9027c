#include "kernels/augment/augment.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/augment/blur.h"
#include "kernels/augment/geometry.h"
#include "kernels/augment/kernels.h"
#include "kernels/augment/tables.h"

namespace millrace::kernels {

using namespace augment;

namespace {

constexpr std::size_t kAlignment = 64;

struct Freed {
  void operator()(Byte* bytes) const { ::operator delete[](bytes, std::align_val_t{kAlignment}); }
};

std::size_t padded(std::size_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}

Histogram histogram_of(const Byte* plane, std::size_t count) {
  Histogram parts[4]{};  // so that equal neighbours do not wait for each other
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (std::size_t part = 0; part < 4; ++part) ++parts[part][plane[i + part]];
  }
  for (; i < count; ++i) ++parts[0][plane[i]];
  for (std::size_t value = 0; value < 256; ++value) {
    parts[0][value] += parts[1][value] + parts[2][value] + parts[3][value];
  }
  return parts[0];
}

}  // namespace

class Augmenter::Work {
 public:
  explicit Work(Target target) : kernels_(kernels_of(target)) {}

  bool apply(const U8View& in, std::span<const Operation> operations, TimeLimit& limit, const MutableU8View& out) {
    load(in);
    for (const Operation& operation : operations) {
      if (limit.is_over_after(count_) || !apply(operation, limit)) return false;
    }
    flush();
    if (out.stride == static_cast<std::ptrdiff_t>(width() * 3)) {
      kernels_.merge(planes_, 0, count_, out.data);
    } else {
      for (int y = 0; y < size_.height; ++y) kernels_.merge(planes_, row_at(y), width(), out.row(y));
    }
    return true;
  }

  std::size_t memory() const { return capacity_ == 0 ? 0 : capacity_ * 6 + kSlack; }

 private:
  std::size_t width() const { return static_cast<std::size_t>(size_.width); }
  std::size_t row_at(int y) const { return static_cast<std::size_t>(y) * width(); }

  void load(const U8View& in) {
    size_ = in.size();
    count_ = width() * static_cast<std::size_t>(size_.height);
    padded_ = padded(count_);
    if (padded_ > capacity_) {
      capacity_ = 0;
      memory_.reset();
      memory_.reset(static_cast<Byte*>(::operator new[](padded_ * 6 + kSlack, std::align_val_t{kAlignment})));
      capacity_ = padded_;
      std::memset(memory_.get(), 0, memory());
    }
    for (std::size_t c = 0; c < 3; ++c) {
      planes_.plane[c] = memory_.get() + c * capacity_;
      others_.plane[c] = memory_.get() + (c + 3) * capacity_;
    }
    has_tables_ = false;
    if (in.stride == static_cast<std::ptrdiff_t>(width() * 3)) return kernels_.split(in.data, count_, planes_, 0);
    for (int y = 0; y < size_.height; ++y) kernels_.split(in.row(y), width(), planes_, row_at(y));
  }

  // Behind the tables that wait.
  void map(std::size_t channel, const Table& table) {
    for (Byte& value : tables_[channel]) value = table[value];
  }
  void map_all(const Table& table) {
    wait();
    for (std::size_t c = 0; c < 3; ++c) map(c, table);
  }
  void wait() {
    if (!has_tables_) tables_[0] = tables_[1] = tables_[2] = identity_table();
    has_tables_ = true;
  }
  void flush() {
    if (!has_tables_) return;
    for (std::size_t c = 0; c < 3; ++c) kernels_.map(tables_[c].data(), planes_.plane[c], padded_);
    has_tables_ = false;
  }

  void equalize() {
    wait();
    for (std::size_t c = 0; c < 3; ++c) {
      const Histogram before = histogram_of(planes_.plane[c], count_);
      Histogram mapped{};
      for (std::size_t value = 0; value < 256; ++value) mapped[tables_[c][value]] += before[value];
      map(c, equalize_table(mapped));
    }
  }

  void stretch() {
    flush();
    wait();
    for (std::size_t c = 0; c < 3; ++c) {
      Byte least = 0, most = 0;
      kernels_.range(planes_.plane[c], count_, &least, &most);
      map(c, autocontrast_table(least, most));
    }
  }

  int grey_mean() const {
    const auto sum = static_cast<double>(kernels_.grey_sum(planes_, count_));
    return static_cast<int>(sum / static_cast<double>(count_) + 0.5);
  }

  bool apply(const Operation& operation, TimeLimit& limit) {
    switch (operation.step) {
      case Step::kInvert:
      case Step::kPosterize:
      case Step::kSolarize:
      case Step::kSolarizeAdd:
        map_all(value_table(operation));
        return true;
      case Step::kBrightness:
        map_all(blend_table(0, operation.factor));
        return true;
      case Step::kContrast:
        flush();
        map_all(blend_table(grey_mean(), operation.factor));
        return true;
      case Step::kAutocontrast:
        stretch();
        return true;
      case Step::kEqualize:
        equalize();
        return true;
      default:
        flush();
        return move_or_mix(operation, limit);
    }
  }

  bool move_or_mix(const Operation& operation, TimeLimit& limit) {
    switch (operation.step) {
      case Step::kSaturation:
        kernels_.saturate(operation.factor, planes_, padded_);
        return true;
      case Step::kGrey:
        kernels_.grey(planes_, padded_);
        return true;
      case Step::kHue:
        return hue(static_cast<Byte>(operation.value & 0xFF), limit);
      case Step::kErase:
        erase(operation);
        return true;
      case Step::kPillowBlur:
        return pillow_blur(kernels_, operation.factor, size_, limit, planes_, others_);
      case Step::kGaussianBlur:
        if (!gaussian_blur(kernels_, operation, planes_, size_, limit, others_)) return false;
        break;
      case Step::kSharpness:
        sharpen(operation.factor);
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
        turn(planes_, size_, operation.value, others_);
        if (operation.value != 2) std::swap(size_.width, size_.height);
        break;
      default:
        return transform(kernels_, operation, size_, limit, planes_, others_.plane[0]);
    }
    std::swap(planes_, others_);
    return true;
  }

  template <class Function>
  void for_rows(Function function) {
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < size_.height; ++y) function(planes_.plane[c], y, others_.plane[c]);
    }
  }

  void sharpen(float factor) {
    for_rows([&](const Byte* in, int y, Byte* out) {
      const Byte* const row = in + row_at(y);
      if (y == 0 || y == size_.height - 1) {
        std::memcpy(out + row_at(y), row, width());
      } else {
        kernels_.smooth(row - width(), row, row + width(), width(), out + row_at(y));
      }
    });
    for (int c = 0; c < 3; ++c) kernels_.blend(factor, planes_.plane[c], padded_, others_.plane[c]);
  }

  bool hue(Byte shift, TimeLimit& limit) {
    constexpr std::size_t kPart = std::size_t{1} << 16;
    for (std::size_t at = 0; at < padded_; at += kPart) {
      const std::size_t count = std::min(kPart, padded_ - at);
      if (limit.is_over_after(count)) return false;
      kernels_.hue(shift, {{planes_.plane[0] + at, planes_.plane[1] + at, planes_.plane[2] + at}}, count);
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
  std::unique_ptr<Byte[], Freed> memory_;
  std::size_t capacity_ = 0;  // bytes a plane
  Size size_;
  std::size_t count_ = 0, padded_ = 0;
  Planes planes_{}, others_{};
  bool has_tables_ = false;
  Table tables_[3];  // what the planes' values still have to go through
};

Augmenter::Augmenter(Target target) : work_(std::make_unique<Work>(target)) {}
Augmenter::~Augmenter() = default;
Augmenter::Augmenter(Augmenter&&) noexcept = default;
Augmenter& Augmenter::operator=(Augmenter&&) noexcept = default;

bool Augmenter::apply(const U8View& in, std::span<const Operation> operations, TimeLimit& limit,
                      const MutableU8View& out) {
  return work_->apply(in, operations, limit, out);
}

std::size_t Augmenter::memory() const {
  return work_->memory();
}

}  // namespace millrace::kernels
