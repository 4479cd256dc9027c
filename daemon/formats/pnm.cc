#include "daemon/formats/pnm.h"

#include "daemon/formats/kernel_bytes.h"
#include "kernels/raster/pnm.h"

namespace millrace {

bool is_pnm(const ByteReader& bytes_untrusted) {
  return kernels::raster::is_pnm(in_kernels(bytes_untrusted.bytes()));
}

Result<ImageHeader> read_pnm_header(ByteReader bytes_untrusted, Metadata metadata) {
  static_cast<void>(metadata);
  kernels::raster::PnmHeader header;
  const std::string wrong = kernels::raster::read_pnm_header(in_kernels(bytes_untrusted.bytes()), header);
  if (!wrong.empty()) return Error{Code::kInvalid, wrong};
  return ImageHeader{.size = {header.width, header.height},
                     .has = {.alpha = header.has_alpha(), .deep = header.sample_bits == 16}};
}

CodecMemory pnm_codec_memory(Size size, ByteReader bytes_untrusted) {
  static_cast<void>(size), static_cast<void>(bytes_untrusted);
  constexpr Bytes kTables{4096};
  return {kTables, kTables};
}

}  // namespace millrace
