#include "daemon/backend/cpu/decoders/png/png_pixels.h"

#include <algorithm>
#include <cstring>

namespace millrace {
namespace {

// The sample at `x`, the first in the upper bits (PNG 7.2).
template <unsigned kBits>
std::uint8_t sample(const std::uint8_t* in, std::size_t x) {
  if constexpr (kBits == 8) return in[x];
  constexpr std::size_t kInByte = 8 / kBits;
  const std::size_t shift = 8 - kBits * (x % kInByte + 1);
  return static_cast<std::uint8_t>(in[x / kInByte] >> shift & ((1U << kBits) - 1));
}

bool is_one_channel(PngColour colour, bool indices) {
  return colour == PngColour::kGrey || (indices && colour == PngColour::kPalette);
}

}  // namespace

PngPixels::PngPixels(const PngChunks& chunks, kernels::Target target, bool indices)
    : width_(chunks.header().width),
      channels_(is_one_channel(chunks.header().colour, indices) ? 1 : 3),
      file_pixel_((bits_per_pixel(chunks.header()) + 7) / 8),
      file_row_(static_cast<std::size_t>((std::uint64_t{width_} * bits_per_pixel(chunks.header()) + 7) / 8)),
      drop_fourth_(kernels::png::drop_fourth(target)),
      convert_(conversion(chunks.header(), indices)) {
  if (chunks.header().colour == PngColour::kPalette) take_colours(chunks);
}

PngPixels::Convert PngPixels::conversion(const PngHeader& header, bool indices) const {
  const bool is_deep = header.bit_depth == 16;
  switch (header.colour) {
    case PngColour::kGrey:
      return is_deep                 ? &PngPixels::clip_grey
             : header.bit_depth == 1 ? &PngPixels::widen_grey<1>
             : header.bit_depth == 2 ? &PngPixels::widen_grey<2>
             : header.bit_depth == 4 ? &PngPixels::widen_grey<4>
                                     : nullptr;
    case PngColour::kPalette:
      if (indices)
        return header.bit_depth == 1   ? &PngPixels::unpack<1>
               : header.bit_depth == 2 ? &PngPixels::unpack<2>
               : header.bit_depth == 4 ? &PngPixels::unpack<4>
                                       : nullptr;
      return header.bit_depth == 1   ? &PngPixels::look_up<1>
             : header.bit_depth == 2 ? &PngPixels::look_up<2>
             : header.bit_depth == 4 ? &PngPixels::look_up<4>
                                     : &PngPixels::look_up<8>;
    case PngColour::kRgb:
      return is_deep ? &PngPixels::take_upper<6> : nullptr;
    case PngColour::kRgbAlpha:
      return is_deep ? &PngPixels::take_upper<8> : &PngPixels::drop_alpha;
    case PngColour::kGreyAlpha:
      return is_deep ? &PngPixels::repeat_grey<4> : &PngPixels::repeat_grey<2>;
  }
  return nullptr;
}

void PngPixels::take_colours(const PngChunks& chunks) {
  for (std::size_t i = 0; i < colours_.size(); ++i) std::copy_n(chunks.palette().data() + 3 * i, 3, colours_[i].data());
}

// Four bytes are written for three.
template <unsigned kBits>
void PngPixels::look_up(const std::uint8_t* in, std::uint8_t* out) const {
  for (std::size_t x = 0; x < width_; ++x) std::memcpy(out + 3 * x, colours_[sample<kBits>(in, x)].data(), 4);
}

template <unsigned kBits>
void PngPixels::unpack(const std::uint8_t* in, std::uint8_t* out) const {
  for (std::size_t x = 0; x < width_; ++x) out[x] = sample<kBits>(in, x);
}

// PNG 13.12: 255 is white.
template <unsigned kBits>
void PngPixels::widen_grey(const std::uint8_t* in, std::uint8_t* out) const {
  constexpr unsigned kScale = 255 / ((1U << kBits) - 1);
  for (std::size_t x = 0; x < width_; ++x) out[x] = static_cast<std::uint8_t>(sample<kBits>(in, x) * kScale);
}

// min(sample, 255), as kernels::clipped_to_bytes(), of samples whose upper byte comes first.
void PngPixels::clip_grey(const std::uint8_t* in, std::uint8_t* out) const {
  for (std::size_t x = 0; x < width_; ++x) out[x] = in[2 * x] != 0 ? std::uint8_t{255} : in[2 * x + 1];
}

template <unsigned kBytes>
void PngPixels::repeat_grey(const std::uint8_t* in, std::uint8_t* out) const {
  for (std::size_t x = 0; x < width_; ++x) std::memset(out + 3 * x, in[kBytes * x], 3);
}

template <unsigned kBytes>
void PngPixels::take_upper(const std::uint8_t* in, std::uint8_t* out) const {
  for (std::size_t x = 0; x < width_; ++x) {
    for (std::size_t c = 0; c < 3; ++c) out[3 * x + c] = in[kBytes * x + 2 * c];
  }
}

void PngPixels::drop_alpha(const std::uint8_t* in, std::uint8_t* out) const {
  drop_fourth_(in, width_, out);
}

}  // namespace millrace
