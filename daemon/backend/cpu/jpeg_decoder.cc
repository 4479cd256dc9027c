#include "daemon/backend/cpu/jpeg_decoder.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs FILE
#include <cstring>

#include <jpeglib.h>

#include <jerror.h>

#include "kernels/cpu/convert.h"

namespace millrace {
namespace {

constexpr int kMaxScans = 500;  // progressive files have about ten; thousands cost hours
constexpr std::size_t kBaseBytes = std::size_t{64}
                                   << 20;   // beside kBytesPerPixel: padding of narrow pictures, tables, rows
constexpr std::size_t kBytesPerPixel = 12;  // coefficients of four components of 2 bytes, padded
constexpr unsigned kCallsPerClock = 16;     // the progress callback looks at the clock once in so many calls
constexpr std::size_t kPixelsPerSkip = std::size_t{1} << 23;

enum class Failure { kNone, kLibrary, kTruncated, kScans, kDeadline, kMemory, kSize, kComponents };

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

void on_message(j_common_ptr jpeg, int level) {
  if (level < 0) ++jpeg->err->num_warnings;
}

void ignore_message(j_common_ptr) {}
void ignore(j_decompress_ptr) {}

boolean on_end_of_bytes(j_decompress_ptr jpeg) {
  fail(decoding_of(jpeg), Failure::kTruncated);
}

void skip_bytes(j_decompress_ptr jpeg, long count) {
  if (count <= 0) return;
  if (static_cast<std::size_t>(count) > jpeg->src->bytes_in_buffer) fail(decoding_of(jpeg), Failure::kTruncated);
  jpeg->src->next_input_byte += count;
  jpeg->src->bytes_in_buffer -= static_cast<std::size_t>(count);
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
}

void read_header(Decoding& decoding, ByteView bytes_untrusted) {
  jpeg_create_decompress(&decoding.jpeg);
  decoding.jpeg.progress = &decoding.progress;
  decoding.source = {.next_input_byte = reinterpret_cast<const JOCTET*>(bytes_untrusted.data()),
                     .bytes_in_buffer = bytes_untrusted.size(),
                     .init_source = ignore,
                     .fill_input_buffer = on_end_of_bytes,
                     .skip_input_data = skip_bytes,
                     .resync_to_restart = jpeg_resync_to_restart,
                     .term_source = ignore};
  decoding.jpeg.src = &decoding.source;
  jpeg_read_header(&decoding.jpeg, TRUE);
}

kernels::Size size_of(const jpeg_decompress_struct& jpeg) {
  return {static_cast<int>(jpeg.image_width), static_cast<int>(jpeg.image_height)};
}

// Whether a marker ends the scan's data. Entropy-coded data cannot contain one (T.81 B.1.1.5) but for restarts, so a
// file that was cut off lacks it. Looked for from the back, where others have it at once.
bool has_marker_after_data(const jpeg_source_mgr& source) {
  const JOCTET* const begin = source.next_input_byte;
  std::size_t left = source.bytes_in_buffer;
  while (left >= 2) {
    const void* const found = memrchr(begin, 0xFF, left - 1);
    if (found == nullptr) return false;
    left = static_cast<std::size_t>(static_cast<const JOCTET*>(found) - begin);
    const int code = begin[left + 1];
    const bool restart = code >= JPEG_RST0 && code < JPEG_RST0 + 8;
    if (code != 0 && code != 0xFF && !restart) return true;
    ++left;
  }
  return false;
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
  // Files of several scans are read to the end anyway.
  if (!jpeg_has_multiple_scans(&jpeg) && !has_marker_after_data(decoding.source)) fail(decoding, Failure::kTruncated);
  choose_output(jpeg, request.reduction);
  jpeg.mem->max_memory_to_use = static_cast<long>(kBaseBytes + kBytesPerPixel * jpeg.image_width * jpeg.image_height);
  jpeg_start_decompress(&jpeg);
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

// Rows of `pitch` bytes: one for what is not wanted, then the box's.
void read_rows(Decoding& decoding, const kernels::Box& box, std::uint8_t* memory, std::size_t pitch) {
  jpeg_decompress_struct& jpeg = decoding.jpeg;
  while (jpeg.output_scanline < static_cast<JDIMENSION>(box.top)) {
    JSAMPROW row = memory;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  for (int y = 0; y < box.height; ++y) {
    JSAMPROW row = memory + pitch * static_cast<std::size_t>(y + 1);
    jpeg_read_scanlines(&jpeg, &row, 1);
    if (jpeg.num_components == 4)
      kernels::cmyk_to_rgb(row, static_cast<int>(jpeg.output_width), kernels::CmykInk::kInverted, row);
  }
}

void read_box(Decoding& decoding, const DecodeRequest& request, PixelBuffer& buffer) {
  jpeg_decompress_struct& jpeg = decoding.jpeg;
  const kernels::Box& box = request.box;
  int left = 0;
  if (request.reduction == 1 && crops_exactly(jpeg)) {
    left = crop_columns(jpeg, box);
    skip_rows(decoding, box);
  }
  const std::size_t pitch = std::size_t{jpeg.output_width} * static_cast<std::size_t>(jpeg.output_components);
  std::uint8_t* const memory = buffer.reserve(pitch * static_cast<std::size_t>(box.height + 1));
  if (memory == nullptr) fail(decoding, Failure::kMemory);
  read_rows(decoding, box, memory, pitch);
  const int channels = jpeg.num_components == 1 ? 1 : 3;
  decoding.pixels = {memory + pitch + std::ptrdiff_t{box.left - left} * channels, box.width, box.height, channels,
                     static_cast<std::ptrdiff_t>(pitch)};
}

// --- the whole ---

// false: decoding.failure says why.
bool try_decode(Decoding& decoding, const DecodeRequest& request, PixelBuffer& buffer) {
  if (setjmp(decoding.on_failure) != 0) return false;
  read_header(decoding, request.bytes_untrusted);
  start(decoding, request);
  read_box(decoding, request, buffer);
  return true;
}

bool try_header(Decoding& decoding, ByteView bytes_untrusted) {
  if (setjmp(decoding.on_failure) != 0) return false;
  read_header(decoding, bytes_untrusted);
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

Result<kernels::Size> jpeg_size(ByteView bytes_untrusted) {
  Decoding decoding;
  prepare(decoding);
  decoding.deadline = Clock::time_point::max();
  const bool read = try_header(decoding, bytes_untrusted);
  Result<kernels::Size> result = read ? Result<kernels::Size>(size_of(decoding.jpeg)) : error_of(decoding, {});
  jpeg_destroy_decompress(&decoding.jpeg);
  return result;
}

}  // namespace millrace
