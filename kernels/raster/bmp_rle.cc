#include "kernels/raster/bmp_rle.h"

#include <algorithm>

#include "kernels/raster/box_writer.h"

namespace millrace::kernels::raster {
namespace {

constexpr std::uint32_t kCommandsBetweenLooks = 4096;

// The picture in the order of the data: row after row, bottom up mostly.
class Rows {
 public:
  Rows(const BmpHeader& header, const Box& box, MutableU8View out)
      : writer_(box, out, header.palette.data()),
        width_(header.width),
        height_(header.height),
        is_bottom_up_(header.is_bottom_up) {
    begin_row();
  }

  bool are_done() const { return row_ == height_; }
  std::uint32_t column() const { return column_; }
  std::uint64_t left() const { return std::uint64_t{height_ - row_} * width_ - column_; }

  void put(std::uint8_t index) {
    if (are_done()) return;
    writer_.put(static_cast<int>(column_), index);
    if (++column_ < width_) return;
    column_ = 0;
    ++row_;
    begin_row();
  }
  void skip(std::uint64_t pixels) {
    for (pixels = std::min(pixels, left()); pixels > 0; --pixels) put(0);
  }
  void end_row() {
    if (column_ > 0) skip(width_ - column_);
  }

 private:
  void begin_row() {
    if (are_done()) return;
    writer_.begin_row(static_cast<int>(is_bottom_up_ ? height_ - 1 - row_ : row_));
  }

  BoxWriter writer_;
  std::uint32_t width_, height_;
  bool is_bottom_up_;
  std::uint32_t row_ = 0, column_ = 0;
};

class Runs {
 public:
  Runs(const BmpHeader& header, FileBytes file, Rows& rows)
      : half_(header.coding == BmpHeader::Coding::kRle4),
        width_(header.width),
        from_(file, header.data_at),
        rows_(rows) {}

  // nullopt: there is more to come.
  std::optional<Decoded> next() {
    const std::optional<std::uint8_t> count = from_.next(), value = from_.next();
    if (!value) return Decoded::kCutOff;
    if (*count > 0) {
      run(*count, *value);
    } else if (*value == 0) {
      rows_.end_row();
      in_row_ = 0;
    } else if (*value == 1) {
      return Decoded::kCutOff;
    } else if (*value == 2) {
      if (!move()) return Decoded::kCutOff;
    } else if (!copy(*value)) {
      return rows_.are_done() ? Decoded::kAll : Decoded::kCutOff;
    }
    return rows_.are_done() ? std::optional(Decoded::kAll) : std::nullopt;
  }

 private:
  // What goes beyond the row is dropped.
  void run(std::uint32_t count, std::uint8_t value) {
    count = std::min<std::uint64_t>(count, in_row_ < width_ ? width_ - in_row_ : 0);
    for (std::uint32_t i = 0; i < count; ++i)
      rows_.put(half_ ? static_cast<std::uint8_t>(i % 2 == 0 ? value >> 4 : value & 15) : value);
    in_row_ += count;
  }

  bool move() {
    const std::optional<std::uint8_t> right = from_.next(), up = from_.next();
    if (!up) return false;
    rows_.skip(*right + std::uint64_t{*up} * width_);
    in_row_ = rows_.column();
    return true;
  }

  // `count` pixels as they are, then a byte if the file is at an odd place. False: the file or the picture ends there.
  bool copy(std::uint32_t count) {
    const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, rows_.left()));
    for (std::uint32_t i = 0; i < wanted; i += half_ ? 2 : 1) {
      const std::optional<std::uint8_t> value = from_.next();
      if (!value) return false;
      rows_.put(half_ ? *value >> 4 : *value);
      if (half_ && i + 1 < wanted) rows_.put(*value & 15);
    }
    if (rows_.are_done()) return false;
    in_row_ += count;
    if (from_.at() % 2 != 0) from_.next();
    return true;
  }

  bool half_;
  std::uint32_t width_;
  Cursor from_;
  Rows& rows_;
  std::uint64_t in_row_ =
      0;  // pixels since the row was begun, as Pillow counts them: a full row does not begin another
};

}  // namespace

Decoded read_bmp_runs(const BmpHeader& header, FileBytes file_untrusted, const Box& box, MutableU8View out,
                      const GoOn& go_on) {
  Rows rows(header, box, out);
  Runs runs(header, file_untrusted, rows);
  for (std::uint32_t i = 0;; ++i) {
    if (i % kCommandsBetweenLooks == 0 && !go_on()) return Decoded::kStopped;
    if (const std::optional<Decoded> end = runs.next()) return *end;
  }
}

}  // namespace millrace::kernels::raster
