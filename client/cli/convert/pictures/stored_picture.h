// A picture as a file without loss stores it: all channels, 8 or 16 bits, a palette, orientation and metadata. Files of
// all formats become one, and two that are equal are the same picture. Reuses its memory. Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/l3/encoding/encoder.h"
#include "kernels/l3/samples.h"
#include "proto/base/result.h"

namespace millrace::cli {

using PictureBytes = std::span<const std::uint8_t>;

class StoredPicture {
 public:
  struct Shape {
    kernels::Size size;
    int channels = 0;  // 1 grey or numbers of colours, 2 grey and alpha, 3 RGB, 4 RGB and alpha
    int bytes = 0;     // of a sample: 1; or 2, in the processor's byte order

    friend bool operator==(const Shape&, const Shape&) = default;
  };

  int orientation = 1;   // 1 ... 8, as EXIF has it
  int colour_bytes = 0;  // of the palette: 3; or 4, with alpha
  std::vector<std::uint8_t> palette;
  std::vector<std::uint8_t> exif;  // without "Exif\0\0"
  std::vector<std::uint8_t> icc, xmp;

  // Another picture, of which nothing is known but this; its samples have any value. REQUIRES: the size is one that L3
  // holds. kInvalid: the memory is not there.
  Result<void> begin(const Shape& shape);

  const Shape& shape() const { return shape_; }
  std::size_t row_bytes() const {
    return static_cast<std::size_t>(shape_.size.width) * static_cast<std::size_t>(shape_.channels * shape_.bytes);
  }
  std::uint8_t* row(int y) { return samples_.get() + static_cast<std::size_t>(y) * row_bytes(); }
  const std::uint8_t* row(int y) const { return samples_.get() + static_cast<std::size_t>(y) * row_bytes(); }
  std::size_t sample_bytes() const { return row_bytes() * static_cast<std::size_t>(shape_.size.height); }

  kernels::l3::MutableSampleView samples();
  kernels::l3::Picture to_l3() const;
  // RGB whose three channels are equal becomes grey.
  void drop_equal_channels();

  friend bool operator==(const StoredPicture& a, const StoredPicture& b);

 private:
  Shape shape_;
  std::size_t room_ = 0;
  std::unique_ptr<std::uint8_t[]> samples_;
};

// Whether L3 holds pictures of this size.
bool is_l3_size(std::uint64_t width, std::uint64_t height);

void assign(std::vector<std::uint8_t>& to, const void* from, std::size_t bytes);

// What is none of 1 ... 8 leaves a picture upright.
int valid_orientation(std::optional<std::uint32_t> stated);
// What exif_transpose() of Pillow goes by: EXIF where it has an orientation, else XMP. 1 where neither makes sense.
int orientation_by(PictureBytes exif, PictureBytes xmp);
// "Exif\0\0", which WebP and others may have before EXIF itself.
void drop_exif_prefix(std::vector<std::uint8_t>& exif);

}  // namespace millrace::cli
