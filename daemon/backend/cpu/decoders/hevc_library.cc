#include "daemon/backend/cpu/decoders/hevc_library.h"

#include <string>

#include "daemon/backend/cpu/decoders/run_time_library.h"

namespace millrace {
namespace {

struct Loaded {
  HevcLibrary library;
  std::string why_not;
};

Loaded load() {
  RunTimeLibrary file("HEIC", MILLRACE_DE265_SONAME, MILLRACE_DE265_PACKAGE);
  HevcLibrary library;
  file.find("de265_new_decoder", library.create);
  file.find("de265_free_decoder", library.destroy);
  file.find("de265_push_NAL", library.push);
  file.find("de265_flush_data", library.flush);
  file.find("de265_decode", library.decode);
  file.find("de265_get_error_text", library.text_of);
  file.find("de265_peek_next_picture", library.picture);
  file.find("de265_get_image_width", library.width);
  file.find("de265_get_image_height", library.height);
  file.find("de265_get_chroma_format", library.chroma);
  file.find("de265_get_bits_per_pixel", library.bits);
  file.find("de265_get_image_plane", library.plane);
  file.find("de265_get_image_full_range_flag", library.is_full_range);
  file.find("de265_get_image_matrix_coefficients", library.matrix);
  // Its tables stay: the last decoder that goes would take them along, and the next one wait for them.
  decltype(&::de265_init) init = nullptr;
  file.find("de265_init", init);
  if (file.why_not().empty() && init() != DE265_OK) file.refuse("libde265 has no memory");
  return {library, file.why_not()};
}

}  // namespace

Result<const HevcLibrary*> hevc_library() {
  static const Loaded loaded = load();
  if (!loaded.why_not.empty()) return Error{Code::kUnsupported, loaded.why_not};
  return &loaded.library;
}

}  // namespace millrace
