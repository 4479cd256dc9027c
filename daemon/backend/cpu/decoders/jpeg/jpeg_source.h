// What our own decoder decodes a JPEG picture from: the file, with the seek index that there may be, or the file's
// packed form. Thread-bound(the lane that owns the request).
#pragma once

#include <optional>
#include <utility>

#include "daemon/backend/cpu/decoders/decode.h"
#include "daemon/cache/index_use.h"
#include "kernels/cpu/jpeg/decoder.h"

namespace millrace {

class JpegSource {
 public:
  // Borrows what the request does.
  explicit JpegSource(const DecodeRequest& request) : request_(request) {
    if (request.packed != nullptr) return;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(request.bytes_untrusted.data());
    header_ = kernels::jpeg::read_header({bytes, request.bytes_untrusted.size()});
  }

  // nullptr: not for our decoder, or of another size than the request says.
  const kernels::jpeg::Header* header() const {
    const kernels::jpeg::Header* const header = request_.packed != nullptr ? &request_.packed->header()
                                                : header_                  ? &*header_
                                                                           : nullptr;
    return header != nullptr && header->size == request_.stored ? header : nullptr;
  }

  // Calls `decode` with the packed image, or with the header and the kernels::jpeg::Seeking* of the index, and returns
  // its answer. REQUIRES: header().
  template <typename Decode>
  kernels::jpeg::Outcome decode(Decode decode) const {
    if (request_.packed != nullptr) return decode(*request_.packed);
    return with_index(request_.index, [&](kernels::jpeg::Seeking* seeking) { return decode(*header_, seeking); });
  }

 private:
  const DecodeRequest& request_;
  std::optional<kernels::jpeg::Header> header_;
};

}  // namespace millrace
