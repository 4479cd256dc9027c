// `fast` for JPEG files that libjpeg-turbo decodes, progressive ones above all, where a picture shrinks much more than
// its blocks do: they are decoded to 4, 2 or 1 samples a side, and the picture is resampled from that grid.
#pragma once

#include <optional>

#include "daemon/backend/cpu/decoders/library_decoder.h"
#include "daemon/backend/cpu/making/fused_output.h"
#include "kernels/cpu/plane/plane_resample.h"

namespace millrace {

// How many times fewer samples a side will do for `resample`: 8, 4, 2 or 1. A picture that is shrunk twice as much as
// its blocks are (with kHamming three times, with kBox four) is far from showing it.
int reduction_of(const kernels::ResampleSpec& resample);

// What a lane keeps for it. Thread-bound(the lane that owns it).
struct ReducedTools {
  LibraryDecoder& libraries;
  kernels::PlaneResampler& planes;
  kernels::Workspace& workspace;
  PixelBuffer& rows;
};

// nullopt: it does not shrink so much; nothing was done then. Errors: as decode_jpeg()'s (jpeg_decoder.h). REQUIRES: as
// for make_fast_from_jpeg() (fused_jpeg.h). Thread-bound(the owner of the tools).
std::optional<FusedOutcome> make_reduced_from_jpeg(const DecodeRequest& request, const FusedOutput& output,
                                                   const ReducedTools& tools);

}  // namespace millrace
