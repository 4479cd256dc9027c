// Pixel format conversions that decoders need before the picture is 8-bit grey or RGB, row by row, as Pillow's
// Image.convert() does them. Pure functions; `count` is in pixels (samples for the 16-bit ones); input and output may
// be the same memory, else they do not overlap.
#pragma once

#include <cstdint>

namespace millrace::kernels {

// Adobe's applications store CMYK in JPEG files inverted (255 is no ink), and an APP14 "Adobe" marker says so; Pillow
// inverts such files back.
enum class CmykInk : std::uint8_t { kNormal, kInverted };

// convert("RGB") of CMYK: each colour is (255 - ink) * (255 - black) / 255, rounded.
void cmyk_to_rgb(const std::uint8_t* cmyk, int count, CmykInk ink, std::uint8_t* rgb);

// convert("L") of RGB: see luma() in kernels/tensor/store_spec.h.
void rgb_to_grey(const std::uint8_t* rgb, int count, std::uint8_t* grey);

// 16-bit samples in the processor's byte order to 8 bits: min(x, 255). What Pillow's convert("L" or "RGB") does with
// its mode I;16, which is what it makes of 16-bit grey PNG files; nearly every such photograph turns white.
void clipped_to_bytes(const std::uint16_t* samples, int count, std::uint8_t* out);

}  // namespace millrace::kernels
