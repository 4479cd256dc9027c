// The chunks of a PNG file that its pixels depend on, as one stream: signature, IHDR, PLTE, the IDATs in a row, and an
// end. Everything else is left out. Thread-bound(its owner).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

class PngChunks {
 public:
  // Walks the chunks up to the end of the image data. Views `bytes_untrusted`. kInvalid: no PNG, a wrong checksum
  // before the image data, a chunk that does not fit in, no image data.
  static Result<PngChunks> parse(ByteView bytes_untrusted);

  // Copies the next out.size() bytes of the stream. false at its end, with nothing copied.
  bool read(MutableByteView out);

 private:
  std::vector<ByteView> parts_;  // the rest of the stream
  std::size_t part_ = 0;
  std::size_t offset_ = 0;  // in parts_[part_]
  std::size_t left_ = 0;    // in all
};

}  // namespace millrace
