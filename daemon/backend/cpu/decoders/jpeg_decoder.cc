#include "daemon/backend/cpu/decoders/jpeg_decoder.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs FILE
#include <cstring>

#include <jpeglib.h>

#include <jerror.h>

#include "kernels/cpu/convert.h"
#include "kernels/jpeg/restart_intervals.h"

namespace millrace {
namespace {

constexpr int kMaxScans = 500;  // progressive files have about ten; thousands cost hours
constexpr std::size_t kBaseBytes = std::size_t{64}
                                   << 20;   // beside kBytesPerPixel: padding of narrow pictures, tables, rows
constexpr std::size_t kBytesPerPixel = 12;  // coefficients of four components of 2 bytes, padded
constexpr unsigned kCallsPerClock = 16;     // the progress callback looks at the clock once in so many calls
constexpr std::size_t kPixelsPerSkip = std::size_t{1} << 23;
constexpr std::size_t kBlockBytes = std::size_t{64} << 10;  // Pillow gives libjpeg a file in blocks of so many

enum class Failure { kNone, kLibrary, kDamaged, kTruncated, kScans, kDeadline, kMemory, kSize, kComponents };

// One decoding. libjpeg reports errors by longjmp, so nothing in here or on the stack above it has a destructor.
struct Decoding {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf on_failure;
  Failure failure;
  unsigned calls;
  Clock::time_point deadline;
  const JOCTET* block_end;  // of the last block that libjpeg has
  const JOCTET* file_end;
  std::size_t left_to_skip;  // bytes behind it that libjpeg does not want
  bool finishing;            // all rows are there: the block at hand is the last that is looked at
  int damage;                // the first warning of the entropy decoder; 0: none
  kernels::U8View pixels;
};

Decoding& decoding_of(j_common_ptr jpeg) {
  return *static_cast<Decoding*>(jpeg->client_data);
}
Decoding& decoding_of(j_decompress_ptr jpeg) {
  return *static_cast<Decoding*>(jpeg->client_data);
}

[[noreturn]] void fail(Decoding& decoding, Failure failure) {
  decoding.failure = failure;
  std::longjmp(decoding.on_failure, 1);
}

// --- what libjpeg calls ---

void on_error(j_common_ptr jpeg) {
  fail(decoding_of(jpeg), Failure::kLibrary);
}

// Whether data was missing, or not what an encoder writes. Not: bytes too many before a marker, which change nothing.
bool is_damage(int warning) {
  switch (warning) {
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_HIT_MARKER:
    case JWRN_MUST_RESYNC:
      return true;
    default:
      return false;
  }
}

void on_message(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  ++jpeg->err->num_warnings;
  Decoding& decoding = decoding_of(jpeg);
  if (decoding.damage == 0 && is_damage(jpeg->err->msg_code)) decoding.damage = jpeg->err->msg_code;
}

void ignore_message(j_common_ptr) {}
void ignore(j_decompress_ptr) {}

// libjpeg asks for more bytes than the blocks up to here have: it suspends, to go on from where it can.
boolean on_end_of_block(j_decompress_ptr jpeg) {
  const Decoding& decoding = decoding_of(jpeg);
  if (!decoding.finishing && decoding.block_end == decoding.file_end) fail(decoding_of(jpeg), Failure::kTruncated);
  return FALSE;
}

void skip_bytes(j_decompress_ptr jpeg, long count) {
  jpeg_source_mgr& source = *jpeg->src;
  const auto wanted = static_cast<std::size_t>(std::max(0L, count)), skipped = std::min(wanted, source.bytes_in_buffer);
  source.next_input_byte += skipped;
  source.bytes_in_buffer -= skipped;
  decoding_of(jpeg).left_to_skip = wanted - skipped;
}

// Hands over another `bytes` of the file, or what is left.
void hand_over(Decoding& decoding, std::size_t bytes) {
  const auto left = static_cast<std::size_t>(decoding.file_end - decoding.block_end);
  if (left == 0) fail(decoding, Failure::kTruncated);
  decoding.block_end += std::min(bytes, left);
  decoding.source.bytes_in_buffer = static_cast<std::size_t>(decoding.block_end - decoding.source.next_input_byte);
  skip_bytes(&decoding.jpeg, static_cast<long>(decoding.left_to_skip));
}

// What reads the rest of the file cannot suspend.
void hand_over_rest(Decoding& decoding) {
  const auto left = static_cast<std::size_t>(decoding.file_end - decoding.block_end);
  if (left > 0) hand_over(decoding, left);
}

// Has libjpeg do what it can, block by block, until it is done.
template <typename Step>
void by_blocks(Decoding& decoding, Step step) {
  while (!step()) hand_over(decoding, kBlockBytes);
}

void on_progress(j_common_ptr jpeg) {
  Decoding& decoding = decoding_of(jpeg);
  if (decoding.jpeg.input_scan_number > kMaxScans) fail(decoding, Failure::kScans);
  if (++decoding.calls % kCallsPerClock == 0 && Clock::now() > decoding.deadline) fail(decoding, Failure::kDeadline);
}

// --- the steps of a decoding, in order ---

void prepare(Decoding& decoding) {
  std::memset(&decoding.jpeg, 0, sizeof decoding.jpeg);
  decoding.jpeg.err = jpeg_std_error(&decoding.errors);
  decoding.jpeg.client_data = &decoding;  // jpeg_create_decompress() keeps it and err
  decoding.errors.error_exit = on_error;
  decoding.errors.emit_message = on_message;
  decoding.errors.output_message = ignore_message;
  std::memset(&decoding.progress, 0, sizeof decoding.progress);
  decoding.progress.progress_monitor = on_progress;
  decoding.failure = Failure::kNone;
  decoding.calls = 0;
  decoding.left_to_skip = 0;
  decoding.finishing = false;
  decoding.damage = 0;
}

void read_header(Decoding& decoding, ByteView bytes_untrusted) {
  jpeg_create_decompress(&decoding.jpeg);
  decoding.jpeg.progress = &decoding.progress;
  const auto* const begin = reinterpret_cast<const JOCTET*>(bytes_untrusted.data());
  decoding.block_end = begin;
  decoding.file_end = begin + bytes_untrusted.size();
  decoding.source = {.next_input_byte = begin,
                     .bytes_in_buffer = 0,
                     .init_source = ignore,
                     .fill_input_buffer = on_end_of_block,
                     .skip_input_data = skip_bytes,
                     .resync_to_restart = jpeg_resync_to_restart,
                     .term_source = ignore};
  decoding.jpeg.src = &decoding.source;
  by_blocks(decoding, [&] { return jpeg_read_header(&decoding.jpeg, TRUE) != JPEG_SUSPENDED; });
}

kernels::Size size_of(const jpeg_decompress_struct& jpeg) {
  return {static_cast<int>(jpeg.image_width), static_cast<int>(jpeg.image_height)};
}

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
  const std::size_t unknown = kBaseBytes + kBytesPerPixel * jpeg.image_width * jpeg.image_height;
  jpeg.mem->max_memory_to_use = static_cast<long>(request.codec.count > 0 ? request.codec.count : unknown);
  if (jpeg.arith_code) hand_over_rest(decoding);
  by_blocks(decoding, [&] { return jpeg_start_decompress(&jpeg) != FALSE; });
}

// Whether skipped rows and cropped columns leave the others as they are: not with several scans or arithmetic coding,
// nor with samplings whose upsampling was not proved (tests/unit/backend_jpeg_test.cc proves these).
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
  const std::int64_t interval = jpeg.restart_interval == 0 ? mcus : jpeg.restart_interval;
  const std::int64_t intervals = (mcus + interval - 1) / interval;
  const kernels::jpeg::FileBytes scan{begin, static_cast<std::size_t>(decoding.file_end - begin)};
  return kernels::jpeg::RestartIntervals(scan, intervals, kernels::best_target()).skip_to(intervals);
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
    if (Clock::now() > decoding.deadline) fail(decoding, Failure::kDeadline);
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
  if (decoding.damage != 0 && !request.is_whole()) fail(decoding, Failure::kDamaged);
  if (reads_on) read_on(decoding, memory);
  const int channels = jpeg.num_components == 1 ? 1 : 3;
  decoding.pixels = {memory + pitch + std::ptrdiff_t{box.left - left} * channels, box.width, box.height, channels,
                     static_cast<std::ptrdiff_t>(pitch)};
}

// --- the whole ---

// false: decoding.failure says why.
bool try_decode(Decoding& decoding, const DecodeRequest& request, PixelBuffer& buffer) {
  if (setjmp(decoding.on_failure) != 0) return false;
  read_header(decoding, request.bytes_untrusted);
  const JOCTET* const scan = decoding.source.next_input_byte;
  start(decoding, request);
  const bool has_rest = !jpeg_has_multiple_scans(&decoding.jpeg);
  read_box(decoding, request, has_rest && (request.is_whole() || !is_well_marked(decoding, scan)), buffer);
  return true;
}

bool is_unsupported(int message) {
  switch (message) {
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOT_COMPILED:
      return true;
    default:
      return false;
  }
}

Error library_error(Decoding& decoding) {
  const int message = decoding.errors.msg_code;
  if (message == JERR_OUT_OF_MEMORY || message == JERR_NO_BACKING_STORE) return memory_error();
  char text[JMSG_LENGTH_MAX] = {};
  decoding.errors.format_message(reinterpret_cast<j_common_ptr>(&decoding.jpeg), text);
  if (is_unsupported(message))
    return {Code::kUnsupported, std::string("this kind of JPEG cannot be decoded here: ") + text};
  return {Code::kInvalid, std::string("damaged JPEG: ") + text};
}

Error error_of(Decoding& decoding, kernels::Size expected) {
  switch (decoding.failure) {
    case Failure::kDamaged:
      decoding.errors.msg_code = decoding.damage;
      break;
    case Failure::kTruncated:
      return {Code::kInvalid, "truncated JPEG: the file ends before the image does"};
    case Failure::kScans:
      return {Code::kInvalid, "damaged JPEG: more than " + std::to_string(kMaxScans) + " scans"};
    case Failure::kDeadline:
      return deadline_error();
    case Failure::kMemory:
      return memory_error();
    case Failure::kSize:
      return size_error(expected, size_of(decoding.jpeg));
    case Failure::kComponents:
      return {Code::kUnsupported, "a JPEG of " + std::to_string(decoding.jpeg.num_components) +
                                      " components cannot be decoded here: 1, 3 or 4 can"};
    case Failure::kLibrary:
    case Failure::kNone:
      break;
  }
  return library_error(decoding);
}

}  // namespace

Result<kernels::U8View> decode_jpeg(const DecodeRequest& request, PixelBuffer& buffer) {
  Decoding decoding;
  prepare(decoding);
  decoding.deadline = request.deadline;
  const bool decoded = try_decode(decoding, request, buffer);
  Result<kernels::U8View> result =
      decoded ? Result<kernels::U8View>(decoding.pixels) : error_of(decoding, request.stored);
  jpeg_destroy_decompress(&decoding.jpeg);
  return result;
}

}  // namespace millrace
