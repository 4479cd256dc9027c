#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"

#include <algorithm>
#include <csetjmp>

#include "daemon/backend/cpu/decoders/jpeg/libjpeg.h"
#include "kernels/cpu/convert.h"
#include "kernels/jpeg/restart_intervals.h"

namespace millrace {
namespace {

using libjpeg::by_blocks;
using libjpeg::Decoding;
using libjpeg::fail;
using libjpeg::Failure;
using libjpeg::hand_over_rest;
using libjpeg::size_of;

constexpr std::size_t kPixelsPerSkip = std::size_t{1} << 23;

// --- the steps of a decoding, in order ---

void choose_output(jpeg_decompress_struct& jpeg, int reduction) {
  jpeg.out_color_space = jpeg.num_components == 1 ? JCS_GRAYSCALE : jpeg.num_components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg.do_fancy_upsampling = TRUE;
  jpeg.scale_num = 1;
  jpeg.scale_denom = static_cast<unsigned>(reduction);
}

void start(Decoding& decoding, const DecodeRequest& request) {
  jpeg_decompress_struct& jpeg = decoding.jpeg;
  if (size_of(jpeg) != request.stored) fail(decoding, Failure::kSize);
  if (jpeg.num_components != 1 && jpeg.num_components != 3 && jpeg.num_components != 4)
    fail(decoding, Failure::kComponents);
  choose_output(jpeg, request.reduction);
  libjpeg::limit_memory(decoding, request.codec);
  if (jpeg.arith_code) hand_over_rest(decoding);
  by_blocks(decoding, [&] { return jpeg_start_decompress(&jpeg) != FALSE; });
}

// Whether skipped rows and cropped columns leave the others as they are: not with several scans or arithmetic coding,
// nor with samplings whose upsampling was not proved (tests/unit/daemon/backend/cpu/jpeg/jpeg_test.cc proves these).
bool crops_exactly(jpeg_decompress_struct& jpeg) {
  if (jpeg_has_multiple_scans(&jpeg) || jpeg.arith_code) return false;
  const jpeg_component_info* const component = jpeg.comp_info;
  if (jpeg.num_components == 1) return component[0].h_samp_factor == 1 && component[0].v_samp_factor == 1;
  if (jpeg.num_components != 3) return false;
  for (int i = 1; i < 3; ++i) {
    if (component[i].h_samp_factor != 1 || component[i].v_samp_factor != 1) return false;
  }
  const int h = component[0].h_samp_factor;
  const int v = component[0].v_samp_factor;
  return (h <= 2 && v <= 2) || (h == 4 && v == 1);
}

// Whether the only scan, whose data begins at `begin`, has all markers that it should have up to EOI, and no others: so
// the rows behind a box need not be decoded to know what becomes of the file. Files of several scans are read to their
// end anyway.
bool is_well_marked(const Decoding& decoding, const JOCTET* begin) {
  const jpeg_decompress_struct& jpeg = decoding.jpeg;
  const std::int64_t mcus = std::int64_t{jpeg.MCUs_per_row} * jpeg.MCU_rows_in_scan;
  const kernels::jpeg::FileBytes scan{begin, static_cast<std::size_t>(decoding.file_end - begin)};
  return kernels::jpeg::is_well_marked(scan, mcus, jpeg.restart_interval, kernels::best_target());
}

// Leaves out the columns that `box` does not depend on. Returns the column where rows begin from now on.
int crop_columns(jpeg_decompress_struct& jpeg, const kernels::Box& box) {
  const int unit = jpeg.max_h_samp_factor * DCTSIZE;
  const int margin = jpeg.max_h_samp_factor > 1 ? unit : 0;  // upsampling looks at neighbours
  const int right = std::min(box.left + box.width + margin, static_cast<int>(jpeg.image_width));
  auto left = static_cast<JDIMENSION>(std::max(0, box.left - margin));
  auto width = static_cast<JDIMENSION>(right) - left;
  if (left < static_cast<JDIMENSION>(unit) && width + left == jpeg.image_width) return 0;
  jpeg_crop_scanline(&jpeg, &left, &width);
  return static_cast<int>(left);
}

// Leaves out the rows above `box`, in steps, for the clock. libjpeg-turbo itself decodes those of them that upsampling
// looks at.
void skip_rows(Decoding& decoding, const kernels::Box& box) {
  jpeg_decompress_struct& jpeg = decoding.jpeg;
  const auto first = static_cast<JDIMENSION>(box.top);
  const auto step = static_cast<JDIMENSION>(std::max<std::size_t>(64, kPixelsPerSkip / jpeg.image_width / 64 * 64));
  while (jpeg.output_scanline < first) {
    jpeg_skip_scanlines(&jpeg, std::min(step, first - jpeg.output_scanline));
    if (decoding.deadline.is_over()) fail(decoding, Failure::kDeadline);
  }
}

void read_row(Decoding& decoding, std::uint8_t* memory) {
  JSAMPROW row = memory;
  by_blocks(decoding, [&] { return jpeg_read_scanlines(&decoding.jpeg, &row, 1) == 1; });
}

// Rows of `pitch` bytes: one for what is not wanted, then the box's.
void read_rows(Decoding& decoding, const kernels::Box& box, std::uint8_t* memory, std::size_t pitch) {
  jpeg_decompress_struct& jpeg = decoding.jpeg;
  while (jpeg.output_scanline < static_cast<JDIMENSION>(box.top)) read_row(decoding, memory);
  for (int y = 0; y < box.height; ++y) {
    std::uint8_t* const row = memory + pitch * static_cast<std::size_t>(y + 1);
    read_row(decoding, row);
    if (jpeg.num_components == 4)
      kernels::cmyk_to_rgb(row, static_cast<int>(jpeg.output_width), kernels::CmykInk::kInverted, row);
  }
}

// The rows that are left, into one of `memory`, and what follows them, as jpeg_finish_decompress() sees it.
void read_on(Decoding& decoding, std::uint8_t* memory) {
  jpeg_decompress_struct& jpeg = decoding.jpeg;
  while (jpeg.output_scanline < jpeg.output_height) read_row(decoding, memory);
  decoding.finishing = true;
  jpeg_finish_decompress(&jpeg);  // FALSE: the block or the file ends first, of which Pillow takes no note
}

void read_box(Decoding& decoding, const DecodeRequest& request, bool reads_on, PixelBuffer& buffer) {
  jpeg_decompress_struct& jpeg = decoding.jpeg;
  const kernels::Box& box = request.box;
  int left = 0;
  if (!reads_on && request.reduction == 1 && crops_exactly(jpeg)) {
    hand_over_rest(decoding);
    left = crop_columns(jpeg, box);
    skip_rows(decoding, box);
  }
  const std::size_t pitch = std::size_t{jpeg.output_width} * static_cast<std::size_t>(jpeg.output_components);
  std::uint8_t* const memory = buffer.reserve(pitch * static_cast<std::size_t>(box.height + 1));
  if (memory == nullptr) fail(decoding, Failure::kMemory);
  read_rows(decoding, box, memory, pitch);
  if (decoding.damage != 0 && !request.is_whole()) fail(decoding, Failure::kDamagedCrop);
  if (reads_on) read_on(decoding, memory);
  const int channels = jpeg.num_components == 1 ? 1 : 3;
  decoding.pixels = {memory + pitch + std::ptrdiff_t{box.left - left} * channels, box.width, box.height, channels,
                     static_cast<std::ptrdiff_t>(pitch)};
}

// --- the whole ---

// false: decoding.failure says why.
bool try_decode(Decoding& decoding, const DecodeRequest& request, PixelBuffer& buffer) {
  if (setjmp(decoding.on_failure) != 0) return false;
  libjpeg::read_header(decoding, request.bytes_untrusted);
  const JOCTET* const scan = decoding.source.next_input_byte;
  start(decoding, request);
  const bool has_rest = !jpeg_has_multiple_scans(&decoding.jpeg);
  read_box(decoding, request, has_rest && (request.is_whole() || !is_well_marked(decoding, scan)), buffer);
  return true;
}

}  // namespace

Result<kernels::U8View> decode_jpeg(const DecodeRequest& request, PixelBuffer& buffer) {
  Decoding decoding;
  libjpeg::prepare(decoding, request.deadline);
  const bool decoded = try_decode(decoding, request, buffer);
  Result<kernels::U8View> result =
      decoded ? Result<kernels::U8View>(decoding.pixels) : libjpeg::error_of(decoding, request.stored);
  jpeg_destroy_decompress(&decoding.jpeg);
  return result;
}

}  // namespace millrace
