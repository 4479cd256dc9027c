#include "daemon/backend/cpu/decoders/jpeg/libjpeg.h"

#include <algorithm>
#include <cstring>

#include <jerror.h>

namespace millrace::libjpeg {
namespace {

constexpr int kMaxScans = 500;  // progressive files have about ten; thousands cost hours
constexpr std::size_t kBaseBytes = std::size_t{64}
                                   << 20;   // beside kBytesPerPixel: padding of narrow pictures, tables, rows
constexpr std::size_t kBytesPerPixel = 12;  // coefficients of four components of 2 bytes, padded
constexpr unsigned kCallsPerClock = 16;     // the progress callback looks at the clock once in so many calls

Decoding& decoding_of(j_common_ptr jpeg) {
  return *static_cast<Decoding*>(jpeg->client_data);
}

Decoding& decoding_of(j_decompress_ptr jpeg) {
  return *static_cast<Decoding*>(jpeg->client_data);
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

void on_progress(j_common_ptr jpeg) {
  Decoding& decoding = decoding_of(jpeg);
  if (decoding.jpeg.input_scan_number > kMaxScans) fail(decoding, Failure::kScans);
  if (++decoding.calls % kCallsPerClock == 0 && decoding.deadline.is_over()) fail(decoding, Failure::kDeadline);
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

}  // namespace

[[noreturn]] void fail(Decoding& decoding, Failure failure) {
  decoding.failure = failure;
  std::longjmp(decoding.on_failure, 1);
}

void hand_over(Decoding& decoding, std::size_t bytes) {
  const auto left = static_cast<std::size_t>(decoding.file_end - decoding.block_end);
  if (left == 0) fail(decoding, Failure::kTruncated);
  decoding.block_end += std::min(bytes, left);
  decoding.source.bytes_in_buffer = static_cast<std::size_t>(decoding.block_end - decoding.source.next_input_byte);
  skip_bytes(&decoding.jpeg, static_cast<long>(decoding.left_to_skip));
}

void hand_over_rest(Decoding& decoding) {
  const auto left = static_cast<std::size_t>(decoding.file_end - decoding.block_end);
  if (left > 0) hand_over(decoding, left);
}

void prepare(Decoding& decoding, const kernels::Deadline& deadline) {
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
  decoding.deadline = deadline;
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

void limit_memory(Decoding& decoding, Bytes codec) {
  jpeg_decompress_struct& jpeg = decoding.jpeg;
  const std::size_t unknown = kBaseBytes + kBytesPerPixel * jpeg.image_width * jpeg.image_height;
  jpeg.mem->max_memory_to_use = static_cast<long>(codec.count > 0 ? codec.count : unknown);
}

kernels::Size size_of(const jpeg_decompress_struct& jpeg) {
  return {static_cast<int>(jpeg.image_width), static_cast<int>(jpeg.image_height)};
}

Error error_of(Decoding& decoding, kernels::Size expected) {
  switch (decoding.failure) {
    case Failure::kDamaged:
      decoding.errors.msg_code = decoding.damage;
      break;
    case Failure::kDamagedCrop: {
      decoding.errors.msg_code = decoding.damage;
      Error error = library_error(decoding);
      error.message += " (a crop is refused for this; shown whole, the picture may still be made)";
      return error;
    }
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
    case Failure::kKind:
      return {Code::kUnsupported, "this JPEG's coefficients cannot be kept packed"};
    case Failure::kLibrary:
    case Failure::kNone:
      break;
  }
  return library_error(decoding);
}

}  // namespace millrace::libjpeg
