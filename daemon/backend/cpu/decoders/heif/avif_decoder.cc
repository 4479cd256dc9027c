#include "daemon/backend/cpu/decoders/heif/avif_decoder.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "daemon/backend/cpu/decoders/heif/avif_library.h"
#include "daemon/backend/cpu/decoders/heif/avif_pixels.h"
#include "daemon/backend/cpu/decoders/raster_request.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

// A picture of 8 x 8 pixels in AVIF, for a decoder that has to do beforehand what decoding does once.
inline constexpr int kSmallestAvifSide = 8;
inline constexpr std::uint8_t kSmallestAvif[] = {
    0,   0,   0,   32,  102, 116, 121, 112, 97,  118, 105, 102, 0,   0,   0,   0,   97,  118, 105, 102, 109, 105,
    102, 49,  109, 105, 97,  102, 77,  65,  49,  66,  0,   0,   0,   235, 109, 101, 116, 97,  0,   0,   0,   0,
    0,   0,   0,   33,  104, 100, 108, 114, 0,   0,   0,   0,   0,   0,   0,   0,   112, 105, 99,  116, 0,   0,
    0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   14,  112, 105, 116, 109, 0,   0,   0,
    0,   0,   1,   0,   0,   0,   30,  105, 108, 111, 99,  0,   0,   0,   0,   68,  0,   0,   1,   0,   1,   0,
    0,   0,   1,   0,   0,   1,   19,  0,   0,   0,   32,  0,   0,   0,   40,  105, 105, 110, 102, 0,   0,   0,
    0,   0,   1,   0,   0,   0,   26,  105, 110, 102, 101, 2,   0,   0,   0,   0,   1,   0,   0,   97,  118, 48,
    49,  67,  111, 108, 111, 114, 0,   0,   0,   0,   106, 105, 112, 114, 112, 0,   0,   0,   75,  105, 112, 99,
    111, 0,   0,   0,   20,  105, 115, 112, 101, 0,   0,   0,   0,   0,   0,   0,   8,   0,   0,   0,   8,   0,
    0,   0,   16,  112, 105, 120, 105, 0,   0,   0,   0,   3,   8,   8,   8,   0,   0,   0,   12,  97,  118, 49,
    67,  129, 0,   12,  0,   0,   0,   0,   19,  99,  111, 108, 114, 110, 99,  108, 120, 0,   1,   0,   13,  0,
    6,   128, 0,   0,   0,   23,  105, 112, 109, 97,  0,   0,   0,   0,   0,   0,   0,   1,   0,   1,   4,   1,
    2,   131, 4,   0,   0,   0,   40,  109, 100, 97,  116, 18,  0,   10,  8,   24,  8,   191, 104, 128, 134, 131,
    66,  50,  18,  28,  71,  135, 133, 221, 211, 77,  52,  194, 192, 0,   0,   144, 53,  142, 60,  127, 192,
};

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
