#include "daemon/formats/l3.h"

#include <string>

#include "daemon/formats/codec_memory.h"
#include "daemon/formats/kernel_bytes.h"
#include "kernels/l3/image.h"
#include "kernels/l3/version1.h"

namespace millrace {
namespace {

Error broken_l3(const std::string& what) {
  return {Code::kInvalid, "a broken L3 file: " + what};
}

// Of the picture's size: there is nothing else.
Result<ImageHeader> read_l3_version1(std::span<const std::uint8_t> file) {
  kernels::l3::Version1Head head;
  const std::string wrong = kernels::l3::read_version1_head(file, head);
  if (!wrong.empty()) return broken_l3(wrong);
  return ImageHeader{
      .size = {static_cast<std::uint32_t>(head.size.width), static_cast<std::uint32_t>(head.size.height)}};
}

}  // namespace

bool is_l3(const ByteReader& bytes_untrusted) {
  const auto file = in_kernels(bytes_untrusted.bytes());
  return kernels::l3::is_l3(file) || kernels::l3::is_version1(file);
}

Result<ImageHeader> read_l3_header(ByteReader bytes_untrusted, Metadata metadata) {
  const auto file = in_kernels(bytes_untrusted.bytes());
  if (kernels::l3::is_version1(file)) return read_l3_version1(file);
  kernels::l3::Head head;
  const std::string wrong = kernels::l3::read_head(file, kernels::l3::Check::kChecksums, head);
  if (!wrong.empty()) return broken_l3(wrong);
  ImageHeader header{
      .size = {static_cast<std::uint32_t>(head.size.width), static_cast<std::uint32_t>(head.size.height)},
      .has = {.alpha = head.channels % 2 == 0 || head.colour_bytes == 4, .deep = head.depth == 16}};
  if (metadata == Metadata::kRead) header.exif = static_cast<std::uint32_t>(head.orientation);
  return header;
}

CodecMemory l3_codec_memory(Size size, ByteReader bytes_untrusted) {
  static_cast<void>(bytes_untrusted);
  constexpr std::uint64_t kSmallestPatch = 32, kPatchBytes = 3 * sizeof(std::uint32_t);
  const std::uint64_t patches = divide_up(size.width, kSmallestPatch) * divide_up(size.height, kSmallestPatch);
  const Bytes memory = kCodecFixed + Bytes{patches * kPatchBytes};
  return {memory, memory};
}

}  // namespace millrace
