#include "daemon/backend/cpu/decoders/l3_decoder.h"

#include "daemon/backend/cpu/decoders/raster_request.h"
#include "kernels/l3/decoder.h"

namespace millrace {
namespace {

Error broken_l3(const std::string& what) {
  return {Code::kInvalid, "a broken L3 file: " + what};
}

}  // namespace

Result<kernels::U8View> decode_l3(const DecodeRequest& request, PixelBuffer& buffer) {
  using namespace kernels::l3;
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
