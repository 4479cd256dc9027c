// libde265, loaded at run time: a host without it has all but HEIC. The functions that decoding takes, with the types
// of the headers that this was built with; another soname is another library. Its pictures' memory is cleared when it
// comes: it calls a picture good of which it had no data for a part. Immutable, thread-safe.
#pragma once

#include <libde265/de265.h>

#include "proto/base/result.h"

namespace millrace {

struct HevcLibrary {
  decltype(&::de265_new_decoder) create = nullptr;
  decltype(&::de265_free_decoder) destroy = nullptr;
  decltype(&::de265_push_NAL) push = nullptr;
  decltype(&::de265_flush_data) flush = nullptr;
  decltype(&::de265_decode) decode = nullptr;
  decltype(&::de265_get_warning) warning = nullptr;
  decltype(&::de265_get_error_text) text_of = nullptr;
  decltype(&::de265_peek_next_picture) picture = nullptr;
  decltype(&::de265_get_image_width) width = nullptr;
  decltype(&::de265_get_image_height) height = nullptr;
  decltype(&::de265_get_chroma_format) chroma = nullptr;
  decltype(&::de265_get_bits_per_pixel) bits = nullptr;
  decltype(&::de265_get_image_plane) plane = nullptr;
  decltype(&::de265_set_image_plane) set_plane = nullptr;
  decltype(&::de265_get_image_plane_user_data) memory_of = nullptr;  // what set_plane was told last
  decltype(&::de265_get_image_full_range_flag) is_full_range = nullptr;
  decltype(&::de265_get_image_matrix_coefficients) matrix = nullptr;
};

// Never unloaded. kUnsupported: it is not installed; says what to install.
Result<const HevcLibrary*> hevc_library();

}  // namespace millrace
