#include "daemon/formats/gif.h"

#include "daemon/formats/kernel_bytes.h"
#include "kernels/raster/gif.h"

namespace millrace {

bool is_gif(const ByteReader& bytes_untrusted) {
  return kernels::raster::is_gif(in_kernels(bytes_untrusted.bytes()));
}

Result<ImageHeader> read_gif_header(ByteReader bytes_untrusted, Metadata metadata) {
  static_cast<void>(metadata);
  kernels::raster::GifHeader header;
  const std::string wrong = kernels::raster::read_gif_header(in_kernels(bytes_untrusted.bytes()), header);
  if (!wrong.empty()) return Error{Code::kInvalid, wrong};
  return ImageHeader{
      .size = {static_cast<std::uint32_t>(header.canvas.width), static_cast<std::uint32_t>(header.canvas.height)},
      .has = {.alpha = header.has_alpha, .passes = header.is_interlaced, .animation = header.is_animated}};
}

CodecMemory gif_codec_memory(Size size, ByteReader bytes_untrusted) {
  static_cast<void>(size), static_cast<void>(bytes_untrusted);
  constexpr Bytes kTables{std::uint64_t{32} << 10U};
  return {kTables, kTables};
}

}  // namespace millrace
