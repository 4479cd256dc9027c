#include "daemon/backend/cpu/decoders/gif_decoder.h"

#include "daemon/backend/cpu/decoders/raster_request.h"
#include "kernels/raster/gif.h"

namespace millrace {

Result<kernels::U8View> decode_gif(const DecodeRequest& request, PixelBuffer& buffer) {
  const kernels::raster::FileBytes file = file_of(request);
  kernels::raster::GifHeader header;
  if (!kernels::raster::is_gif(file)) return Error{Code::kInvalid, "no GIF file"};
  const std::string wrong = kernels::raster::read_gif_header(file, header);
  if (!wrong.empty()) return Error{Code::kInvalid, wrong};
  MILLRACE_TRY_VOID(check_size(header.canvas, request));
  if (request.indices) header.show_indices();
  MILLRACE_TRY(const kernels::MutableU8View pixels, box_in(buffer, request, header.channels()));
  const auto end = kernels::raster::read_gif_frame(header, file, request.box, pixels, in_time(request));
  MILLRACE_TRY_VOID(verdict_of(end, "GIF"));
  return kernels::U8View(pixels);
}

}  // namespace millrace
