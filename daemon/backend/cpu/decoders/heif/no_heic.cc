// HEIC in a build that found no headers of libde265: it is refused by name.
#include "daemon/backend/cpu/decoders/heif/heic_decoder.h"

namespace millrace {

Result<void> can_decode_heic() {
  return Error{Code::kUnsupported, "this daemon was built without HEIC: build it where libde265-dev is installed"};
}

Result<kernels::U8View> decode_heic(const DecodeRequest&, PixelBuffer&) {
  return can_decode_heic().error();
}

void prepare_heic() {}

}  // namespace millrace
