// The units of a HEVC picture in a HEIF file (ISO/IEC 14496-15, 8.3; ITU-T H.265, 7.3): what has to be known of them
// before libde265 sees them, for it makes tables for whatever size a parameter set says. Pure functions of the bytes,
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>

#include "proto/base/byte_reader.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

struct HevcUnits {
  std::uint32_t slices = 0;  // there are no more pictures
  std::uint32_t bits = 8;    // of a sample, the most that a parameter set says
  std::uint32_t chroma = 1;  // 0: none, 1: 4:2:0, 2: 4:2:2, 3: 4:4:4; the most
};

// `configuration`: what "hvcC" holds; `data`: of the item. `see` (may be empty) gets the units in order. `largest`: a
// parameter set of a larger picture, but for what pads it to whole blocks, is an error. Errors: kInvalid; what `see`
// says.
Result<HevcUnits> read_hevc_units(ByteView configuration_untrusted, ByteView data_untrusted, Size largest,
                                  const std::function<Result<void>(ByteView)>& see);

}  // namespace millrace
