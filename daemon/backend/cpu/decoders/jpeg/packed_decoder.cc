#include "daemon/backend/cpu/decoders/jpeg/packed_decoder.h"

#include <cstring>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"
#include "daemon/model/bytes/encoded_image.h"
#include "kernels/mrp/packed_file.h"

namespace millrace {

static_assert(EncodedBytes::kRoomBehind >= kernels::packed::kPadding);

Result<void> open_packed_file(ByteView file_untrusted, kernels::Size stored, kernels::packed::PackedImage& image) {
  kernels::mrp::PackedFile file;
  const std::string wrong = kernels::mrp::read_packed_file(
      {reinterpret_cast<const std::uint8_t*>(file_untrusted.data()), file_untrusted.size()}, file);
  if (!wrong.empty()) return Error{Code::kInvalid, "a broken MRP file: " + wrong};
  if (!image.read(file.image, kernels::packed::Check::kChecksum))
    return Error{Code::kInvalid, "a broken MRP file: its packed image is damaged"};
  if (image.header().size != stored) return size_error(stored, image.header().size);
  return {};
}

Error made_up_error() {
  return {Code::kInvalid, "a broken MRP file: its packed image is none that an encoder makes"};
}

Result<kernels::U8View> decode_packed(const DecodeRequest& request, PixelBuffer& buffer) {
  EncodedBytes file(request.bytes_untrusted.size());
  if (file.size() != 0) std::memcpy(file.writable().data(), request.bytes_untrusted.data(), file.size());
  file.clear_behind();
  kernels::packed::PackedImage image;
  MILLRACE_TRY_VOID(open_packed_file(file.view(), request.stored, image));
  DecodeRequest packed = request;
  packed.packed = &image;
  kernels::jpeg::Decoder decoder;
  const auto decoded = decode_jpeg_fast(packed, buffer, decoder);
  return decoded ? *decoded : made_up_error();
}

}  // namespace millrace
