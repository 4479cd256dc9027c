#include "daemon/backend/cpu/decoders/l3_decoder.h"

#include "daemon/backend/cpu/decoders/raster_request.h"
#include "kernels/l3/decoder.h"
#include "kernels/l3/version1.h"

namespace millrace {
namespace {

Error broken_l3(const std::string& what) {
  return {Code::kInvalid, "a broken L3 file: " + what};
}

Result<kernels::U8View> decode_version1(const DecodeRequest& request, PixelBuffer& buffer) {
  using kernels::l3::Version1Image;
  Version1Image image;
  const std::string wrong = image.read(file_of(request));
  if (!wrong.empty()) return broken_l3(wrong);
  MILLRACE_TRY_VOID(check_size(image.head().size, request));
  MILLRACE_TRY(const kernels::MutableU8View pixels, box_in(buffer, request, 3));
  switch (image.decode(request.box, request.deadline, {pixels.data, pixels.size(), 3, 1, pixels.stride})) {
    case Version1Image::Outcome::kFine:
      return kernels::U8View(pixels);
    case Version1Image::Outcome::kLate:
      return deadline_error();
    case Version1Image::Outcome::kBroken:
      break;
  }
  return broken_l3("a patch whose rows do not add up to its size");
}

}  // namespace

Result<kernels::U8View> decode_l3(const DecodeRequest& request, PixelBuffer& buffer) {
  using namespace kernels::l3;
  if (is_version1(file_of(request))) return decode_version1(request, buffer);
  Image image;
  const std::string wrong = image.read(file_of(request), Check::kChecksums);
  if (!wrong.empty()) return broken_l3(wrong);
  const Head& head = image.head();
  MILLRACE_TRY_VOID(check_size(head.size, request));
  if (request.indices && head.channels == 1 && head.depth == 16) return levels_error("a grey L3 of 16 bits");
  const Form form = request.indices ? Form::kNumbers : Form::kShown;
  MILLRACE_TRY(const kernels::MutableU8View pixels, box_in(buffer, request, shape_of(head, form).channels));
  Decoder decoder(request.target);
  const Outcome outcome = decoder.decode(image, request.box, form, request.deadline,
                                         {pixels.data, pixels.size(), pixels.channels, 1, pixels.stride});
  if (outcome.is_late) return deadline_error();
  if (!outcome.is_fine()) return broken_l3(text_of(outcome));
  return kernels::U8View(pixels);
}

}  // namespace millrace
