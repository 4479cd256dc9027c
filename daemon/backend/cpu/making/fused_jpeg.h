// From a JPEG file to a tensor without a picture in between: nothing larger than the caches is written but the tensor.
// For upright files that our own decoder takes, and for packed forms. Others are decoded to pixels and resampled from
// there.
//
// `exact`: rows of the crop's pixels go to the resampler in fours, and from there to the store; the tensor is the one
// that a whole picture would give. `fast`: blocks become samples of the crop only, MCU row by MCU row; as soon as there
// are enough of them each component is resampled from its own grid, colours are converted at the output's size, and
// rows are stored.
#pragma once

#include <optional>

#include "daemon/backend/cpu/decoders/decode.h"
#include "daemon/backend/cpu/making/fused_output.h"
#include "kernels/cpu/jpeg/decoder.h"
#include "kernels/cpu/plane/plane_resample.h"

namespace millrace {

// What a lane keeps for it. Thread-bound(the lane that owns it).
struct FusedTools {
  kernels::jpeg::Decoder& decoder;
  kernels::PlaneResampler& planes;
  kernels::Workspace& workspace;
  PixelBuffer& rows;
};

// nullopt: not for it; what is in the tensor then means nothing. Errors: kDeadline, kExhausted. REQUIRES:
// output.resample is valid, with a filter other than kNearest; the crop lies inside request.stored. request.box and
// resample.channels count for nothing.
std::optional<FusedOutcome> make_exact_from_jpeg(const DecodeRequest& request, const FusedOutput& output,
                                                 const FusedTools& tools);
std::optional<FusedOutcome> make_fast_from_jpeg(const DecodeRequest& request, const FusedOutput& output,
                                                const FusedTools& tools);

}  // namespace millrace
