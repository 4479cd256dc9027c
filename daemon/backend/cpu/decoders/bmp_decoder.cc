#include "daemon/backend/cpu/decoders/bmp_decoder.h"

#include "daemon/backend/cpu/decoders/raster_request.h"
#include "kernels/raster/bmp_rle.h"

namespace millrace {
namespace {

using kernels::raster::BmpHeader;
using kernels::raster::FileBytes;

constexpr int kRowsBetweenLooks = 64;  // at the clock

// All rows are there, the last one in the file perhaps without what fills it up.
bool has_rows(const BmpHeader& header, FileBytes file) {
  const std::uint64_t end = header.data_at + header.stride() * (header.height - 1) + header.row_bytes();
  return end <= file.size();
}

Result<void> read_rows(const BmpHeader& header, const DecodeRequest& request, const kernels::MutableU8View& pixels) {
  const FileBytes file = file_of(request);
  if (!has_rows(header, file)) return cut_off_error("BMP");
  const kernels::Box& box = request.box;
  for (int y = 0; y < box.height; ++y) {
    if (y % kRowsBetweenLooks == 0 && request.deadline.is_over()) return deadline_error();
    kernels::raster::read_bmp_row(header, file.data() + header.row_at(static_cast<std::uint32_t>(box.top + y)),
                                  box.left, {pixels.row(y), box.width, 1, pixels.channels, pixels.stride});
  }
  return {};
}

// Black and white is Pillow's mode 1, whose numbers are not its levels.
Result<void> show_bmp_indices(BmpHeader& header) {
  if (header.pixels != BmpHeader::Pixels::kIndex) return coloured_error();
  if (header.is_black_and_white())
    return Error{Code::kInvalid,
                 "a BMP whose palette is black and white, which are no indices: store it in grey of 8 bits, or with a "
                 "palette of other colours"};
  header.show_indices();
  return {};
}

}  // namespace

Result<kernels::U8View> decode_bmp(const DecodeRequest& request, PixelBuffer& buffer) {
  const FileBytes file = file_of(request);
  BmpHeader header;
  if (!kernels::raster::is_bmp(file)) return Error{Code::kInvalid, "no BMP file"};
  const std::string wrong = kernels::raster::read_bmp_header(file, header);
  if (!wrong.empty()) return Error{Code::kInvalid, wrong};
  MILLRACE_TRY_VOID(check_size({static_cast<int>(header.width), static_cast<int>(header.height)}, request));
  if (request.indices) MILLRACE_TRY_VOID(show_bmp_indices(header));
  MILLRACE_TRY(const kernels::MutableU8View pixels, box_in(buffer, request, header.channels()));
  if (header.coding == BmpHeader::Coding::kRows) {
    MILLRACE_TRY_VOID(read_rows(header, request, pixels));
  } else {
    const auto end = kernels::raster::read_bmp_runs(header, file, request.box, pixels, in_time(request));
    MILLRACE_TRY_VOID(verdict_of(end, "BMP"));
  }
  return kernels::U8View(pixels);
}

}  // namespace millrace
