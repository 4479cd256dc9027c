#include "daemon/backend/cpu/decoders/avif_library.h"

#include <dlfcn.h>

#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr const char* kSoname = MILLRACE_AVIF_SONAME;

struct Loaded {
  AvifLibrary library;
  std::string why_not;
};

Loaded load() {
  Loaded loaded;
  void* const handle = dlopen(kSoname, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    loaded.why_not =
        std::string("AVIF is decoded where ") + kSoname + " is installed (Debian: " MILLRACE_AVIF_PACKAGE ")";
    return loaded;
  }
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr && loaded.why_not.empty())
      loaded.why_not = std::string("AVIF cannot be decoded: ") + kSoname + " lacks " + name;
  };
  AvifLibrary& library = loaded.library;
  find("avifDecoderCreate", library.create);
  find("avifDecoderDestroy", library.destroy);
  find("avifDecoderSetSource", library.set_source);
  find("avifDecoderSetIOMemory", library.set_memory);
  find("avifDecoderParse", library.parse);
  find("avifDecoderNextImage", library.next_image);
  find("avifResultToString", library.text_of);
  find("avifCodecName", library.codec_name);
  find("avifImageCreateEmpty", library.create_image);
  find("avifImageDestroy", library.destroy_image);
  find("avifImageSetViewRect", library.set_view);
  find("avifRGBImageSetDefaults", library.set_defaults);
  find("avifImageYUVToRGB", library.make_rgb);
  if (loaded.why_not.empty() && library.codec_name(AVIF_CODEC_CHOICE_DAV1D, AVIF_CODEC_FLAG_CAN_DECODE) == nullptr)
    loaded.why_not = std::string("AVIF cannot be decoded: ") + kSoname + " was built without dav1d";
  return loaded;
}

}  // namespace

Result<const AvifLibrary*> avif_library() {
  static const Loaded loaded = load();
  if (!loaded.why_not.empty()) return Error{Code::kUnsupported, loaded.why_not};
  return &loaded.library;
}

}  // namespace millrace
