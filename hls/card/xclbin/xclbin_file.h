// An xclbin, as xclbin.h of XRT has it: a header, the headers of sections, sections on multiples of eight bytes. Values;
// thread-safe: plain functions.
#pragma once

#include <string>

#include "hls/table/kernel_table.h"

namespace millrace::card {

// Its uuid is made from everything else in it: equal contents, equal uuids, and only these.
std::string xclbin_bytes(const hls::Image& image, unsigned units, const std::string& bitstream);

}  // namespace millrace::card
