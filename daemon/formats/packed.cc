#include "daemon/formats/packed.h"

#include <string>

#include "daemon/formats/codec_memory.h"
#include "daemon/formats/jpeg.h"
#include "daemon/formats/kernel_bytes.h"
#include "kernels/mrp/packed_file.h"

namespace millrace {
bool is_packed(const ByteReader& bytes_untrusted) {
  return kernels::mrp::is_packed_file(in_kernels(bytes_untrusted.bytes()));
}

Result<ImageHeader> read_packed_header(ByteReader bytes_untrusted, Metadata metadata) {
  kernels::mrp::PackedFile file;
  const std::string wrong = kernels::mrp::read_packed_file(in_kernels(bytes_untrusted.bytes()), file);
  if (!wrong.empty()) return Error{Code::kInvalid, "a broken MRP file: " + wrong};
  const ByteReader front(ByteView(reinterpret_cast<const std::byte*>(file.front.data()), file.front.size()));
  if (!is_jpeg(front)) return Error{Code::kInvalid, "a broken MRP file: there is no JPEG header in it"};
  auto header = read_jpeg_header(front, metadata);
  if (!header) return header.error().within("the JPEG header in an MRP file");
  header->has = {};
  return header;
}

CodecMemory packed_codec_memory(Size size, ByteReader bytes_untrusted) {
  static_cast<void>(bytes_untrusted);
  constexpr std::uint64_t kGroupBlocks = 32, kGroupBytes = 8, kMostComponents = 3, kMostPerRow = 6;
  const std::uint64_t across = divide_up(size.width, 8), down = divide_up(size.height, 8);
  const Bytes groups{(across * down * kMostComponents / kGroupBlocks + down * kMostPerRow) * kGroupBytes};
  const Bytes memory = kCodecFixed + Bytes{std::uint64_t{size.width} * 256} + groups;
  return {memory, memory};
}

}  // namespace millrace
