#include "daemon/backend/cpu/decoders/heif/avif_decoder.h"

#include <algorithm>
#include <memory>

#include "daemon/backend/cpu/decoders/heif/avif_library.h"
#include "daemon/backend/cpu/decoders/heif/avif_pixels.h"
#include "daemon/backend/cpu/decoders/heif/avif_smallest.h"
#include "daemon/backend/cpu/decoders/raster_request.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

using Decoder = std::unique_ptr<avifDecoder, decltype(&::avifDecoderDestroy)>;

Error error_of(const AvifLibrary& avif, const avifDecoder& decoder, avifResult result) {
  std::string why = avif.text_of(result);
  if (decoder.diag.error[0] != '\0') why += ": " + printable(decoder.diag.error);
  switch (result) {
    case AVIF_RESULT_OUT_OF_MEMORY:
      return memory_error();
    case AVIF_RESULT_NOT_IMPLEMENTED:
    case AVIF_RESULT_UNSUPPORTED_DEPTH:
    case AVIF_RESULT_NO_CODEC_AVAILABLE:
      return {Code::kUnsupported, "this kind of AVIF is not decoded here: " + why};
    case AVIF_RESULT_TRUNCATED_DATA:
      return {Code::kInvalid, "truncated AVIF: " + why};
    default:
      return {Code::kInvalid, "damaged AVIF: " + why};
  }
}

// As Pillow's are set.
void set_up(avifDecoder& decoder) {
  decoder.codecChoice = AVIF_CODEC_CHOICE_DAV1D;
  decoder.maxThreads = 1;
  decoder.ignoreExif = AVIF_TRUE;
  decoder.ignoreXMP = AVIF_TRUE;
  decoder.strictFlags &= ~static_cast<avifStrictFlags>(AVIF_STRICT_CLAP_VALID | AVIF_STRICT_PIXI_REQUIRED);
  decoder.imageDimensionLimit = 0;  // the file's size was compared with the limits
}

// What dav1d may make of a picture of this size. It counts whole pictures, and a grid's last ones may reach beyond it.
std::uint32_t most_pixels(kernels::Size size) {
  constexpr std::uint32_t kLeast = 1 << 16;
  const auto pixels = static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(pixels, kLeast, std::uint64_t{AVIF_DEFAULT_IMAGE_SIZE_LIMIT}));
}

// libavif holds the sizes of all items against the limit while it looks at the boxes, and dav1d's is set then. So where
// an item beside the picture is larger the limit is set behind that, and what had been set up is set up anew.
avifResult parse(const AvifLibrary& avif, avifDecoder& decoder, ByteView bytes, std::uint32_t most) {
  const auto at = [&](std::uint32_t limit) {
    decoder.imageSizeLimit = limit;
    const avifResult set = avif.set_memory(&decoder, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    return set == AVIF_RESULT_OK ? avif.parse(&decoder) : set;
  };
  avifResult result = at(most);
  if (result != AVIF_RESULT_BMFF_PARSE_FAILED || most == AVIF_DEFAULT_IMAGE_SIZE_LIMIT) return result;
  result = at(AVIF_DEFAULT_IMAGE_SIZE_LIMIT);
  decoder.imageSizeLimit = most;
  return result == AVIF_RESULT_OK ? avif.reset(&decoder) : result;
}

}  // namespace

Result<void> can_decode_avif() {
  MILLRACE_TRY_VOID(avif_library());
  return {};
}

Result<kernels::U8View> decode_avif(const DecodeRequest& request, PixelBuffer& buffer) {
  MILLRACE_TRY(const AvifLibrary* const avif, avif_library());
  const Decoder decoder(avif->create(), avif->destroy);
  if (!decoder) return memory_error();
  set_up(*decoder);
  avifResult result = avif->set_source(decoder.get(), AVIF_DECODER_SOURCE_PRIMARY_ITEM);
  if (result == AVIF_RESULT_OK) result = parse(*avif, *decoder, request.bytes_untrusted, most_pixels(request.stored));
  if (result != AVIF_RESULT_OK) return error_of(*avif, *decoder, result);
  const avifImage& image = *decoder->image;
  MILLRACE_TRY_VOID(check_size({static_cast<int>(image.width), static_cast<int>(image.height)}, request));
  if (request.deadline.is_over()) return deadline_error();
  result = avif->next_image(decoder.get());
  if (result != AVIF_RESULT_OK) return error_of(*avif, *decoder, result);
  MILLRACE_TRY_VOID(check_size({static_cast<int>(image.width), static_cast<int>(image.height)}, request));
  AvifPixels pixels(*avif, image, decoder->alphaPresent != AVIF_FALSE);
  MILLRACE_TRY(const kernels::MutableU8View out, box_in(buffer, request, pixels.channels()));
  MILLRACE_TRY_VOID(pixels.convert(request, out));
  return kernels::U8View(out);
}

void prepare_avif() {
  const auto begin = reinterpret_cast<const std::byte*>(kSmallestAvif);
  PixelBuffer buffer;
  const auto made = decode_avif({{begin, sizeof kSmallestAvif},
                                 {kSmallestAvifSide, kSmallestAvifSide},
                                 {0, 0, kSmallestAvifSide, kSmallestAvifSide},
                                 Clock::now() + std::chrono::seconds(5)},
                                buffer);
  static_cast<void>(made);
}

}  // namespace millrace
