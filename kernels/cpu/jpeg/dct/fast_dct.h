// The inverse DCT of `fast`: as inverse_dct.h's, in 16 bits all the way and in half the instructions, a level away from
// it at times. Arai, Agui and Nakajima's (Transactions of the IEICE, E71, 1988: five multiplications a line, the rest
// of them part of dequantisation), with one bit after the point. Sums saturate, so blocks that no picture has come out
// clipped, and the same on every target. Thread-safe: plain functions over the caller's memory.
#pragma once

#include "kernels/cpu/jpeg/dct/inverse_dct.h"

namespace millrace::kernels::jpeg {

// What it multiplies by, in units of 2^-15, beside whole numbers.
inline constexpr std::int16_t kHalfOctave = 13573;       // sqrt(2) - 1
inline constexpr std::int16_t kOddFactors[3] = {27779,   // 2 cos(pi/8) - 1
                                                2700,    // 2 (cos(pi/8) - cos(3 pi/8)) - 1
                                                20091};  // 2 (cos(pi/8) + cos(3 pi/8)) - 2
inline constexpr int kFastShift = 4;                     // an eighth, and the bit after the point
// Added to DC: the middle level, and a half for rounding.
inline constexpr std::int16_t kFastMiddle = (128 << kFastShift) + (1 << (kFastShift - 1));

// Fills dequantiser.fast.
void add_fast_factors(const std::array<std::uint16_t, kCoefficients>& quant, Dequantiser& dequantiser);

// Plain arithmetic, for scalar_inverse_dct().
bool transform_fast_scalar(const BlockJob* jobs, int count);

}  // namespace millrace::kernels::jpeg
