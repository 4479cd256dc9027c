#include <algorithm>

#include "kernels/raster/box_writer.h"
#include "kernels/raster/gif.h"

namespace millrace::kernels::raster {
namespace {

constexpr int kMostBits = 12;
constexpr int kTable = 1 << kMostBits;
constexpr std::uint32_t kCodesBetweenLooks = 1 << 16;

// The frame's pixels in the order of its data: row after row, or every eighth row first (GIF89a, appendix E).
class Pixels {
 public:
  Pixels(const GifHeader& header, const Box& box, MutableU8View out)
      : writer_(box, out, header.palette.data()), frame_(header.frame), is_interlaced_(header.is_interlaced) {
    if (is_interlaced_) step_ = 8;
    begin_row();
  }

  bool are_done() const { return is_done_; }

  void put(std::uint8_t index) {
    if (is_done_) return;
    writer_.put(frame_.left + x_, index);
    if (++x_ < frame_.width) return;
    x_ = 0;
    y_ += step_;
    while (y_ >= frame_.height && !is_done_) begin_pass();
    if (!is_done_) begin_row();
  }

 private:
  void begin_pass() {
    constexpr struct { int first, step; } kPasses[] = {{4, 8}, {2, 4}, {1, 2}};
    is_done_ = !is_interlaced_ || pass_ == std::size(kPasses);
    if (is_done_) return;
    y_ = kPasses[pass_].first;
    step_ = kPasses[pass_].step;
    ++pass_;
  }
  void begin_row() { writer_.begin_row(frame_.top + y_); }

  BoxWriter writer_;
  Box frame_;
  bool is_interlaced_;
  bool is_done_ = false;
  int x_ = 0, y_ = 0, step_ = 1;
  std::size_t pass_ = 0;
};

// Codes out of blocks of at most 255 bytes. A block counts only if all of it is there.
class Codes {
 public:
  Codes(FileBytes file, std::size_t at) : file_(file), at_(at) {}

  // nullopt: there are no more.
  std::optional<int> next(int bits) {
    while (held_ < bits) {
      if (left_ == 0 && !begin_block()) return std::nullopt;
      bits_ |= std::uint32_t{file_[at_++]} << held_;
      held_ += 8;
      --left_;
    }
    const std::uint32_t code = bits_ & ((1U << bits) - 1);
    bits_ >>= bits;
    held_ -= bits;
    return static_cast<int>(code);
  }

 private:
  bool begin_block() {
    if (at_ >= file_.size() || file_[at_] == 0 || file_.size() - at_ - 1 < file_[at_]) return false;
    left_ = file_[at_++];
    return true;
  }

  FileBytes file_;
  std::size_t at_;
  std::size_t left_ = 0;  // bytes of the block
  std::uint32_t bits_ = 0;
  int held_ = 0;
};

// GIF89a, appendix F: strings of pixels by codes, each one pixel longer than another.
class Strings {
 public:
  explicit Strings(int bits) : clear_(1 << bits) { reset(); }

  int bits() const { return bits_; }
  int clear() const { return clear_; }
  int end() const { return clear_ + 1; }

  void reset() {
    next_ = clear_ + 2;
    bits_ = 1;
    while ((1 << bits_) <= clear_) ++bits_;
    last_ = kNone;
  }

  // The string of a code that is neither clear nor end, into `to`. False: there is no such code.
  bool expand(int code, Pixels& to) {
    if (last_ == kNone) {
      if (code > clear_) return false;
      first_ = static_cast<std::uint8_t>(code);
      last_ = code;
      to.put(first_);
      return true;
    }
    if (code > next_) return false;
    int at = code, length = 0;
    if (code == next_) {  // the last string, and its own first pixel again
      text_[length++] = first_;
      at = last_;
    }
    for (; at >= clear_; at = link_[at]) {
      if (length == kTable || at >= kTable) return false;
      text_[length++] = pixel_[at];
    }
    first_ = static_cast<std::uint8_t>(at);
    to.put(first_);
    while (length > 0) to.put(text_[--length]);
    remember();
    last_ = code;
    return true;
  }

 private:
  static constexpr int kNone = -1;

  // The last string, one pixel longer.
  void remember() {
    if (next_ >= kTable) return;
    pixel_[next_] = first_;
    link_[next_] = static_cast<std::uint16_t>(last_);
    if (next_ == (1 << bits_) - 1 && bits_ < kMostBits) ++bits_;
    ++next_;
  }

  int clear_;
  int next_ = 0, bits_ = 0, last_ = kNone;
  std::uint8_t first_ = 0;  // of the last string
  std::uint8_t pixel_[kTable]{};
  std::uint16_t link_[kTable]{};
  std::uint8_t text_[kTable];  // a string, backwards
};

void fill(const GifHeader& header, MutableU8View out) {
  const std::uint8_t* const colour = header.palette.data() + 3 * header.around;
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x)
      std::copy_n(colour, out.channels, out.row(y) + std::ptrdiff_t{x} * out.channels);
  }
}

}  // namespace

Decoded read_gif_frame(const GifHeader& header, FileBytes file_untrusted, const Box& box, MutableU8View out,
                       const GoOn& go_on) {
  if (header.frame != whole(header.canvas)) fill(header, out);
  Pixels pixels(header, box, out);
  Codes codes(file_untrusted, header.data_at);
  Strings strings(header.code_bits);
  for (std::uint32_t i = 0; !pixels.are_done(); ++i) {
    if (i % kCodesBetweenLooks == 0 && !go_on()) return Decoded::kStopped;
    const std::optional<int> code = codes.next(strings.bits());
    if (!code || *code == strings.end()) return Decoded::kCutOff;
    if (*code == strings.clear()) {
      strings.reset();
    } else if (!strings.expand(*code, pixels)) {
      return Decoded::kBroken;
    }
  }
  return Decoded::kAll;
}

}  // namespace millrace::kernels::raster
