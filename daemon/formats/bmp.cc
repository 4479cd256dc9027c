#include "daemon/formats/bmp.h"

#include "daemon/formats/kernel_bytes.h"
#include "kernels/raster/bmp.h"

namespace millrace {

bool is_bmp(const ByteReader& bytes_untrusted) {
  return kernels::raster::is_bmp(in_kernels(bytes_untrusted.bytes()));
}

Result<ImageHeader> read_bmp_header(ByteReader bytes_untrusted, Metadata metadata) {
  static_cast<void>(metadata);
  kernels::raster::BmpHeader header;
  const std::string wrong = kernels::raster::read_bmp_header(in_kernels(bytes_untrusted.bytes()), header);
  if (!wrong.empty()) return Error{Code::kInvalid, wrong};
  return ImageHeader{.size = {header.width, header.height}, .has = {.alpha = header.has_alpha}};
}

CodecMemory bmp_codec_memory(Size size, ByteReader bytes_untrusted) {
  static_cast<void>(size), static_cast<void>(bytes_untrusted);
  constexpr Bytes kTables{4096};
  return {kTables, kTables};
}

}  // namespace millrace
