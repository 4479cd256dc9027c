// What an image file's header says: format, stored size, orientation, what decoding it will take. Reads what it needs
// of the bytes, so that every sample can be planned before it is decoded. Allocates nothing on success, but for EXIF in
// several pieces and for compressed texts that the orientation depends on: up to 3 MiB, until it returns. Pure
// functions, thread-safe.
#pragma once

#include <cstddef>

#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/limits.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

enum class UseOrientation { kNo, kYes };

// kInvalid with the reason: empty, of no format that we know, cut off before the size, a side of 0, over the limits on
// sides or pixels. kExhausted: no memory for what the orientation is to be read from. A file that is broken further on
// passes; its decoder will say so. The orientation is what Pillow's ImageOps.exif_transpose() goes by: EXIF, else XMP's
// tiff:Orientation; 1 when there is none that can be read, when it is not 1 ... 8, and for kNo. Costs a walk over the
// segments.
Result<SourceInfo> probe_image(ByteView bytes_untrusted, const SampleLimits& limits, UseOrientation use);

// What of probe_image()'s verdict depends on the first kBeginning bytes, where there are so many. kInvalid: of no format
// that we know.
inline constexpr std::size_t kBeginning = 64;
Result<void> check_format(ByteView beginning_untrusted);

// Whether probe_image() and counting passes take microseconds, and few.
bool is_probed_quickly(ByteView bytes_untrusted);

// What of probe_image()'s verdict depends on the limits, of what an earlier one said. kInvalid.
Result<void> check_size(Size size, const SampleLimits& limits);

}  // namespace millrace
