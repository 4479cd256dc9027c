// Huffman tables of a file into those of the kernels. Thread-safe: plain functions.
#pragma once

#include "kernels/cuda/decode_table.h"
#include "kernels/jpeg/header.h"

namespace millrace::kernels::cuda {

// false: libjpeg-turbo would refuse the table (codes that do not fit, the code of all ones, DC sizes above 15); `table`
// means nothing then.
bool build_ac_table(const jpeg::HuffmanSpec& spec, DecodeTable& table);
bool build_dc_table(const jpeg::HuffmanSpec& spec, DecodeTable& table);

}  // namespace millrace::kernels::cuda
