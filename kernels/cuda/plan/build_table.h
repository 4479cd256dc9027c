// Huffman tables of a file into those of the kernels. Thread-safe: plain functions.
#pragma once

#include "kernels/cuda/tokenise/decode_table.h"
#include "kernels/jpeg/canonical_code.h"

namespace millrace::kernels::cuda {

// false: jpeg::make_code() refuses the table; `table` means nothing then.
bool build_table(const jpeg::HuffmanSpec& spec, jpeg::TableKind kind, DecodeTable& table);

}  // namespace millrace::kernels::cuda
