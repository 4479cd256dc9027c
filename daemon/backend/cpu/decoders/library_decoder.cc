#include "daemon/backend/cpu/decoders/library_decoder.h"

#include "daemon/backend/cpu/decoders/bmp_decoder.h"
#include "daemon/backend/cpu/decoders/gif_decoder.h"
#include "daemon/backend/cpu/decoders/heif/avif_decoder.h"
#include "daemon/backend/cpu/decoders/heif/heic_decoder.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_coefficients.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "daemon/backend/cpu/decoders/png/png_decoder.h"
#include "daemon/backend/cpu/decoders/tiff/tiff_decoder.h"
#include "daemon/backend/cpu/decoders/webp_decoder.h"

namespace millrace {

Result<kernels::U8View> DecodingInLane::decode(ImageFormat format, const DecodeRequest& request, PixelBuffer& buffer) {
  switch (format) {
    case ImageFormat::kJpeg:
      return decode_jpeg(request, buffer);
    case ImageFormat::kPng:
      return decode_png(request, buffer);
    case ImageFormat::kWebp:
      return decode_webp(request, buffer);
    case ImageFormat::kBmp:
      return decode_bmp(request, buffer);
    case ImageFormat::kGif:
      return decode_gif(request, buffer);
    case ImageFormat::kTiff:
      return decode_tiff(request, buffer);
    case ImageFormat::kAvif:
      return decode_avif(request, buffer);
    case ImageFormat::kHeic:
      return decode_heic(request, buffer);
    case ImageFormat::kPacked:
    case ImageFormat::kPnm:
    case ImageFormat::kL3:
      break;
  }
  return Error{Code::kUnsupported, "no library decodes this image format"};
}

Result<std::vector<std::uint8_t>> DecodingInLane::pack(const DecodeRequest& request,
                                                       kernels::packed::Encoder& encoder) {
  MILLRACE_TRY_VOID(pack_coefficients(request, encoder));
  std::vector<std::uint8_t> packed;
  if (!encoder.finish(packed)) return memory_error();
  return packed;
}

}  // namespace millrace
