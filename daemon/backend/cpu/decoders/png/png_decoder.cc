#include "daemon/backend/cpu/decoders/png/png_decoder.h"

#include <spng.h>

#include <algorithm>
#include <memory>
#include <string>

#include "daemon/backend/cpu/decoders/png/png_chunks.h"
#include "daemon/backend/cpu/decoders/png/png_quick_decoder.h"
#include "daemon/backend/cpu/decoders/png/png_rows.h"
#include "daemon/backend/cpu/decoders/png/png_stream.h"
#include "kernels/cpu/convert.h"

namespace millrace {
namespace {

using Png = std::unique_ptr<spng_ctx, void (*)(spng_ctx*)>;

// How libspng hands rows over, and what they become.
struct RowFormat {
  int spng_format;
  int bytes;     // a pixel, from libspng
  int channels;  // in the end
};

RowFormat row_format(const PngHeader& header, bool indices) {
  if (indices && header.colour == PngColour::kPalette) return {SPNG_FMT_PNG, 1, 1};  // REQUIRES: of 8 bits
  if (header.colour != PngColour::kGrey) return {SPNG_FMT_RGB8, 3, 3};
  if (header.bit_depth == 16) return {SPNG_FMT_PNG, 2, 1};  // in the processor's byte order
  return {SPNG_FMT_G8, 1, 1};
}

int read_stream(spng_ctx*, void* stream, void* out, std::size_t bytes) {
  return static_cast<PngStream*>(stream)->read({static_cast<std::byte*>(out), bytes}) ? SPNG_OK : SPNG_IO_EOF;
}

// PngStream makes nothing that libspng could refuse but the rows: their filters.
Error error_of(int code, const PngStream& stream) {
  if (stream.error()) return *stream.error();
  if (code == SPNG_EMEM || code == SPNG_EZLIB_INIT) return memory_error();
  return {Code::kInvalid, std::string("damaged PNG: ") + spng_strerror(code)};
}

Result<Png> open(PngStream& stream) {
  Png png(spng_ctx_new(SPNG_CTX_IGNORE_ADLER32), spng_ctx_free);
  if (!png) return memory_error();
  spng_set_crc_action(png.get(), SPNG_CRC_USE, SPNG_CRC_USE);
  spng_set_option(png.get(), SPNG_IMG_WINDOW_BITS, PngStream::kWindowBits);
  const int error = spng_set_png_stream(png.get(), read_stream, &stream);
  if (error != SPNG_OK) return error_of(error, stream);
  return png;
}

kernels::Size size_of(const PngHeader& header) {
  return {static_cast<int>(header.width), static_cast<int>(header.height)};
}

// All rows go by; those of the box stay, whole, behind one for the others. A row of an interlaced picture comes several
// times, each time with more of its pixels.
Result<void> read_rows(spng_ctx* png, const PngStream& stream, const DecodeRequest& request, std::uint8_t* memory,
                       std::size_t pitch) {
  spng_row_info row{};
  int error = SPNG_OK;
  for (unsigned count = 0; error == SPNG_OK; ++count) {
    error = spng_get_row_info(png, &row);
    if (error != SPNG_OK) break;
    const std::int64_t y = std::int64_t{row.row_num} - request.box.top;
    const bool wanted = y >= 0 && y < request.box.height;
    error = spng_decode_row(png, memory + (wanted ? static_cast<std::size_t>(y + 1) * pitch : 0), pitch);
    if (count % 16 == 0 && request.deadline.is_over()) return deadline_error();
  }
  if (error != SPNG_EOI) return error_of(error, stream);
  return {};
}

Result<void> check_indices(const PngHeader& header) {
  if (header.colour != PngColour::kGrey || (header.bit_depth != 1 && header.bit_depth != 16)) return {};
  return levels_error(header.bit_depth == 1 ? "a grey PNG of 1 bit" : "a grey PNG of 16 bits");
}

// The walk up to the image data of a picture of the request's size.
Result<PngChunks> open(const DecodeRequest& request) {
  MILLRACE_TRY(PngChunks chunks, PngChunks::open(request.bytes_untrusted));
  if (size_of(chunks.header()) != request.stored) return size_error(request.stored, size_of(chunks.header()));
  if (request.indices) MILLRACE_TRY_VOID(check_indices(chunks.header()));
  return chunks;
}

}  // namespace

Result<kernels::U8View> decode_png(const DecodeRequest& request, PixelBuffer& buffer) {
  MILLRACE_TRY(const PngChunks chunks, open(request));
  if (const auto decoded = decode_png_quickly(request, chunks, buffer)) return *decoded;
  return decode_png_by_libspng(request, buffer);
}

Result<kernels::U8View> decode_png_by_libspng(const DecodeRequest& request, PixelBuffer& buffer) {
  MILLRACE_TRY(PngChunks chunks, open(request));
  const PngHeader& header = chunks.header();
  if (request.indices && header.colour == PngColour::kPalette && header.bit_depth < 8)
    return Error{Code::kInvalid,
                 "an interlaced or damaged PNG with a palette of less than 8 bits, of which no indices are read: store "
                 "it without interlacing"};
  MILLRACE_TRY(PngRows raw_rows, PngRows::create(chunks));
  PngStream stream(chunks, raw_rows);
  MILLRACE_TRY(const Png png, open(stream));
  const RowFormat format = row_format(header, request.indices);
  const std::size_t pitch = std::size_t{header.width} * static_cast<std::size_t>(format.bytes);
  const kernels::Box& box = request.box;
  std::uint8_t* const memory = buffer.reserve(pitch * static_cast<std::size_t>(box.height + 1));
  if (memory == nullptr) return memory_error();
  const int error = spng_decode_image(png.get(), nullptr, 0, format.spng_format, SPNG_DECODE_PROGRESSIVE);
  if (error != SPNG_OK) return error_of(error, stream);
  MILLRACE_TRY_VOID(read_rows(png.get(), stream, request, memory, pitch));
  MILLRACE_TRY_VOID(chunks.check_rest());
  const kernels::U8View rows{memory + pitch, static_cast<int>(header.width), box.height, format.channels,
                             static_cast<std::ptrdiff_t>(pitch)};
  if (format.bytes == 2) {
    for (int y = 0; y < box.height; ++y) {
      std::uint8_t* const row = memory + pitch * static_cast<std::size_t>(y + 1);
      kernels::clipped_to_bytes(reinterpret_cast<const std::uint16_t*>(row), rows.width, row);
    }
  }
  return rows.crop({box.left, 0, box.width, box.height});
}

}  // namespace millrace
