#include "daemon/backend/cpu/decoders/hevc_library.h"

#include <dlfcn.h>

#include <string>
#include <type_traits>

namespace millrace {
namespace {

constexpr const char* kSoname = MILLRACE_DE265_SONAME;

struct Loaded {
  HevcLibrary library;
  std::string why_not;
};

Loaded load() {
  Loaded loaded;
  void* const handle = dlopen(kSoname, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    loaded.why_not =
        std::string("HEIC is decoded where ") + kSoname + " is installed (Debian: " MILLRACE_DE265_PACKAGE ")";
    return loaded;
  }
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr && loaded.why_not.empty())
      loaded.why_not = std::string("HEIC cannot be decoded: ") + kSoname + " lacks " + name;
  };
  HevcLibrary& library = loaded.library;
  find("de265_new_decoder", library.create);
  find("de265_free_decoder", library.destroy);
  find("de265_push_NAL", library.push);
  find("de265_flush_data", library.flush);
  find("de265_decode", library.decode);
  find("de265_get_error_text", library.text_of);
  find("de265_peek_next_picture", library.picture);
  find("de265_get_image_width", library.width);
  find("de265_get_image_height", library.height);
  find("de265_get_chroma_format", library.chroma);
  find("de265_get_bits_per_pixel", library.bits);
  find("de265_get_image_plane", library.plane);
  find("de265_get_image_full_range_flag", library.is_full_range);
  find("de265_get_image_matrix_coefficients", library.matrix);
  // Its tables stay: the last decoder that goes would take them along, and the next one wait for them.
  decltype(&::de265_init) init = nullptr;
  find("de265_init", init);
  if (loaded.why_not.empty() && init() != DE265_OK) loaded.why_not = "HEIC cannot be decoded: libde265 has no memory";
  return loaded;
}

}  // namespace

Result<const HevcLibrary*> hevc_library() {
  static const Loaded loaded = load();
  if (!loaded.why_not.empty()) return Error{Code::kUnsupported, loaded.why_not};
  return &loaded.library;
}

}  // namespace millrace
