#include "daemon/backend/cpu/decoders/pnm_decoder.h"

#include "daemon/backend/cpu/decoders/raster_request.h"
#include "kernels/raster/pnm.h"

namespace millrace {
namespace {

using kernels::raster::FileBytes;
using kernels::raster::PnmHeader;
using kernels::raster::PnmRows;

constexpr int kRowsBetweenLooks = 64;  // at the clock

// Header, and that all rows are there.
Result<PnmHeader> open_pnm(FileBytes file, const DecodeRequest& request) {
  PnmHeader header;
  if (!kernels::raster::is_pnm(file)) return Error{Code::kInvalid, "no PNM file"};
  const std::string wrong = kernels::raster::read_pnm_header(file, header);
  if (!wrong.empty()) return Error{Code::kInvalid, wrong};
  MILLRACE_TRY_VOID(check_size({static_cast<int>(header.width), static_cast<int>(header.height)}, request));
  if ((file.size() - header.data_at) / header.row_bytes() < header.height) return cut_off_error("PNM");
  return header;
}

bool has_slack(FileBytes file, const kernels::U8View& box) {
  const std::uint8_t* const end = box.row(box.height - 1) + std::ptrdiff_t{box.width} * box.channels;
  const auto before = static_cast<std::size_t>(box.data - file.data());
  const auto behind = static_cast<std::size_t>(file.data() + file.size() - end);
  return before >= PixelBuffer::kSlack && behind >= PixelBuffer::kSlack;
}

}  // namespace

Result<kernels::U8View> decode_pnm(const DecodeRequest& request, PixelBuffer& buffer) {
  const FileBytes file = file_of(request);
  MILLRACE_TRY(const PnmHeader header, open_pnm(file, request));
  const auto pitch = static_cast<std::ptrdiff_t>(header.row_bytes());
  const std::uint8_t* const first = file.data() + header.data_at;
  const kernels::Box& box = request.box;
  if (header.is_plain()) {
    const kernels::U8View whole{first, request.stored.width, request.stored.height, header.channels(), pitch};
    if (const kernels::U8View there = whole.crop(box); has_slack(file, there)) return there;
  }
  MILLRACE_TRY(const kernels::MutableU8View pixels, box_in(buffer, request, header.channels()));
  const PnmRows rows(header);
  for (int y = 0; y < box.height; ++y) {
    if (y % kRowsBetweenLooks == 0 && request.deadline.is_over()) return deadline_error();
    rows.read(first + (box.top + y) * pitch, box.left, {pixels.row(y), box.width, 1, header.channels(), pixels.stride});
  }
  return kernels::U8View(pixels);
}

}  // namespace millrace
