// Samples as libtiff hands them over to pixels of 8 bits, as Pillow's convert("RGB") has them: of 16-bit colour the upper
// byte, 16-bit grey cut off at 255, alpha dropped (and what was multiplied by it divided again); or
// of a palette the indices alone. Pure functions, thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace millrace {

struct TiffPixels {
  enum class Kind : std::uint8_t { kGrey, kGreyInverted, kPalette, kIndex, kRgb, kRgbPremultiplied, kCmyk };

  Kind kind = Kind::kGrey;
  int bits = 8;     // of a sample: 1, 2, 4, 8; 16: in the processor's byte order
  int samples = 1;  // of a pixel, those that are dropped included
  std::array<std::uint8_t, 3 * 256> palette{};

  int channels() const { return kind == Kind::kGrey || kind == Kind::kGreyInverted || kind == Kind::kIndex ? 1 : 3; }

  // `count` pixels from `first` on of a row.
  void convert(const std::uint8_t* row, int first, int count, std::uint8_t* out) const;
  // One plane of samples, of colour `channel`. REQUIRES: kRgb.
  void convert_plane(const std::uint8_t* row, int first, int count, int channel, std::uint8_t* out) const;

 private:
  void convert_small(const std::uint8_t* row, int first, int count, std::uint8_t* out) const;
  template <class Sample>
  void convert_whole(const Sample* pixels, int count, std::uint8_t* out) const;
};

}  // namespace millrace
