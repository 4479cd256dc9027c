// The kernel that makes tensors of JPEG files' scans. kernel_table.h has its shape and its place in the build.
#pragma once

#include <cstdint>

#include "hls/base/burst.h"

// Completes every image of the batch with a reason; touches nothing outside the four buffers, whatever is in them.
// Without a batch head that fits both them and the completions it completes nothing.
extern "C" void decode_jpeg(const millrace::hls::Burst* commands, const millrace::hls::Burst* encoded,
                            millrace::hls::Burst* tensors, millrace::hls::Burst* completions,
                            std::uint32_t commands_bytes, std::uint32_t encoded_bytes, std::uint32_t tensors_bytes,
                            std::uint32_t completions_bytes, std::uint32_t phase);
