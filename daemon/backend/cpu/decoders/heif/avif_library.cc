#include "daemon/backend/cpu/decoders/heif/avif_library.h"

#include <string>

#include "daemon/backend/cpu/decoders/heif/run_time_library.h"

namespace millrace {
namespace {

struct Loaded {
  AvifLibrary library;
  std::string why_not;
};

Loaded load() {
  RunTimeLibrary file("AVIF", MILLRACE_AVIF_SONAME, MILLRACE_AVIF_PACKAGE);
  AvifLibrary library;
  file.find("avifDecoderCreate", library.create);
  file.find("avifDecoderDestroy", library.destroy);
  file.find("avifDecoderSetSource", library.set_source);
  file.find("avifDecoderSetIOMemory", library.set_memory);
  file.find("avifDecoderParse", library.parse);
  file.find("avifDecoderReset", library.reset);
  file.find("avifDecoderNextImage", library.next_image);
  file.find("avifResultToString", library.text_of);
  file.find("avifCodecName", library.codec_name);
  file.find("avifImageCreateEmpty", library.create_image);
  file.find("avifImageDestroy", library.destroy_image);
  file.find("avifImageSetViewRect", library.set_view);
  file.find("avifRGBImageSetDefaults", library.set_defaults);
  file.find("avifImageYUVToRGB", library.make_rgb);
  if (file.why_not().empty() && library.codec_name(AVIF_CODEC_CHOICE_DAV1D, AVIF_CODEC_FLAG_CAN_DECODE) == nullptr)
    file.refuse("libavif was built without dav1d");
  return {library, file.why_not()};
}

}  // namespace

Result<const AvifLibrary*> avif_library() {
  static const Loaded loaded = load();
  if (!loaded.why_not.empty()) return Error{Code::kUnsupported, loaded.why_not};
  return &loaded.library;
}

}  // namespace millrace
