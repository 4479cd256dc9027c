// Run-length coded BMP files (BI_RLE8, BI_RLE4), as Pillow 13 reads them: README.md says where that is not what others
// do. The bytes are hostile. Thread-safe: a plain function.
#pragma once

#include "kernels/raster/bmp.h"
#include "kernels/raster/decoded.h"

namespace millrace::kernels::raster {

// `box` of the picture into `out`; all of the data is read, whatever the box. Never kBroken. REQUIRES: header.coding is
// not kRows; `out` is as large as the box, of header.channels() a pixel.
Decoded read_bmp_runs(const BmpHeader& header, FileBytes file_untrusted, const Box& box, MutableU8View out,
                      const GoOn& go_on);

}  // namespace millrace::kernels::raster
