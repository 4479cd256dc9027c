// Rows of a PNG file, their filters undone, to pixels: 8 bits a sample, grey for grey files, else RGB, as Pillow's
// convert("RGB") has them (png_decoder.h says how); or of a palette the indices alone. Thread-safe: immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "daemon/backend/cpu/decoders/png/png_chunks.h"
#include "kernels/base/target.h"
#include "kernels/cpu/png/unfilter.h"

namespace millrace {

class PngPixels {
 public:
  PngPixels(const PngChunks& chunks, kernels::Target target, bool indices = false);

  int channels() const { return channels_; }
  // Of a pixel in the file, at least 1: what filters go by.
  std::size_t file_pixel() const { return file_pixel_; }
  std::size_t file_row() const { return file_row_; }  // without its filter byte
  std::size_t row() const { return std::size_t{width_} * static_cast<std::size_t>(channels_); }

  // Whether rows of the file are pixels already.
  bool are_there() const { return convert_ == nullptr; }

  // One row. kernels::png::kRowSlack bytes behind `in` are read, and behind `out` written. REQUIRES: !are_there().
  void convert(const std::uint8_t* in, std::uint8_t* out) const { (this->*convert_)(in, out); }

 private:
  using Convert = void (PngPixels::*)(const std::uint8_t* in, std::uint8_t* out) const;

  Convert conversion(const PngHeader& header, bool indices) const;
  void take_colours(const PngChunks& chunks);

  template <unsigned kBits>
  void look_up(const std::uint8_t* in, std::uint8_t* out) const;
  template <unsigned kBits>
  void unpack(const std::uint8_t* in, std::uint8_t* out) const;
  template <unsigned kBits>
  void widen_grey(const std::uint8_t* in, std::uint8_t* out) const;
  void clip_grey(const std::uint8_t* in, std::uint8_t* out) const;
  template <unsigned kBytes>
  void repeat_grey(const std::uint8_t* in, std::uint8_t* out) const;
  template <unsigned kBytes>
  void take_upper(const std::uint8_t* in, std::uint8_t* out) const;
  void drop_alpha(const std::uint8_t* in, std::uint8_t* out) const;

  std::uint32_t width_;
  int channels_;
  std::size_t file_pixel_;
  std::size_t file_row_;
  kernels::png::DropFourth drop_fourth_;
  std::array<std::array<std::uint8_t, 4>, 256> colours_;  // of a palette: red, green, blue
  Convert convert_;                                       // nullptr: none is needed
};

}  // namespace millrace
