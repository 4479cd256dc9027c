#include "daemon/formats/l3.h"

#include <string>

#include "daemon/formats/codec_memory.h"
#include "daemon/formats/kernel_bytes.h"
#include "kernels/l3/image.h"

namespace millrace {

bool is_l3(const ByteReader& bytes_untrusted) {
  return kernels::l3::is_l3(in_kernels(bytes_untrusted.bytes()));
}

Result<ImageHeader> read_l3_header(ByteReader bytes_untrusted, Metadata metadata) {
  kernels::l3::Head head;
  const std::string wrong =
      kernels::l3::read_head(in_kernels(bytes_untrusted.bytes()), kernels::l3::Check::kChecksums, head);
  if (!wrong.empty()) return Error{Code::kInvalid, "a broken L3 file: " + wrong};
  ImageHeader header{
      .size = {static_cast<std::uint32_t>(head.size.width), static_cast<std::uint32_t>(head.size.height)},
      .has = {.alpha = head.channels % 2 == 0 || head.colour_bytes == 4, .deep = head.depth == 16}};
  if (metadata == Metadata::kRead) header.exif = static_cast<std::uint32_t>(head.orientation);
  return header;
}

CodecMemory l3_codec_memory(Size size, ByteReader bytes_untrusted) {
  static_cast<void>(size), static_cast<void>(bytes_untrusted);
  return {kCodecFixed, kCodecFixed};
}

}  // namespace millrace
