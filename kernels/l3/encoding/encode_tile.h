// The tile encoders of encoder.h's table, a source an instruction set. Internal to kernels/l3.
#pragma once

#include "kernels/l3/encoding/encoder.h"

namespace millrace::kernels::l3 {

void encode_tile_scalar(const SampleView& pixels, Effort effort, std::vector<std::uint8_t>& out);
#if defined(__x86_64__)
void encode_tile_avx2(const SampleView& pixels, Effort effort, std::vector<std::uint8_t>& out);
#endif

}  // namespace millrace::kernels::l3
