// A JPEG header's tables as a card wants them. Thread-safe: plain functions.
#pragma once

#include <string_view>

#include "hls/wire/words.h"
#include "kernels/jpeg/header.h"

namespace millrace::hls {

// Why not, or empty. REQUIRES: `tables` is all zero.
std::string_view put_tables(const kernels::jpeg::Header& header, JpegTables& tables);

}  // namespace millrace::hls
