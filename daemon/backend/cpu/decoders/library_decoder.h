// Who runs the decoders that are not ours (libjpeg-turbo, libspng, libwebp, libtiff), and those of ours for formats that attackers
// like (BMP, GIF): the lane itself, or a process beside it that may do nothing but decode
// (isolation/decoder_children.h). Pixels, verdicts and words are the same.
//
// Our own decoders, of baseline JPEG, packed coefficients and PNM, are the lane's in any case.
//
// Thread-bound(the lane that owns it).
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/backend/cpu/decoders/decode.h"
#include "daemon/model/bytes/encoded_image.h"
#include "kernels/packed/encoder.h"

namespace millrace {

class LibraryDecoder {
 public:
  virtual ~LibraryDecoder() = default;

  // The box's pixels, good until the next call here or on `buffer`; PixelBuffer::kSlack readable bytes before and behind
  // them. Errors: as the format's decoder says, and kInternal: no process can be had.
  virtual Result<kernels::U8View> decode(ImageFormat format, const DecodeRequest& request, PixelBuffer& buffer) = 0;

  // The packed form of a JPEG file in several scans, by pack_coefficients() (jpeg_coefficients.h). Whatever its bytes
  // are, kernels::packed::PackedImage::read() may see them.
  virtual Result<std::vector<std::uint8_t>> pack(const DecodeRequest& request, kernels::packed::Encoder& encoder) = 0;

  // Gives back what a giant image left behind. What decode() returned is gone.
  virtual void trim() = 0;
};

class DecodingInLane final : public LibraryDecoder {
 public:
  Result<kernels::U8View> decode(ImageFormat format, const DecodeRequest& request, PixelBuffer& buffer) override;
  Result<std::vector<std::uint8_t>> pack(const DecodeRequest& request, kernels::packed::Encoder& encoder) override;
  void trim() override {}  // the buffer's owner does
};

}  // namespace millrace
