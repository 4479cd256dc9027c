// AVIF in a build that found no headers of libavif: it is refused by name.
#include "daemon/backend/cpu/decoders/heif/avif_decoder.h"

namespace millrace {

Result<void> can_decode_avif() {
  return Error{Code::kUnsupported, "this daemon was built without AVIF: build it where libavif-dev is installed"};
}

Result<kernels::U8View> decode_avif(const DecodeRequest&, PixelBuffer&) {
  return can_decode_avif().error();
}

void prepare_avif() {}

}  // namespace millrace
