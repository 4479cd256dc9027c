#include "daemon/backend/cpu/decoders/png/png_rows.h"

#include <libdeflate.h>

#include <algorithm>
#include <new>

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace {
namespace {

Error cut_off() {
  return {Code::kInvalid, "truncated PNG: the image data ends before the image does"};
}

}  // namespace

PngRowSizes::PngRowSizes(const PngHeader& header) {
  constexpr std::uint32_t kLeft[] = {0, 4, 0, 2, 0, 1, 0}, kTop[] = {0, 0, 4, 0, 2, 0, 1};
  constexpr std::uint32_t kAcross[] = {8, 8, 4, 4, 2, 2, 1}, kDown[] = {8, 8, 8, 4, 4, 2, 2};
  const std::uint64_t bits = bits_per_pixel(header);
  const auto steps = [](std::uint32_t size, std::uint32_t from, std::uint32_t step) {
    return size > from ? (size - from - 1) / step + 1 : 0;
  };
  const auto set = [&](Pass& pass, std::uint32_t width, std::uint32_t height) {
    if (width == 0) return;
    pass = {static_cast<std::size_t>((width * bits + 7) / 8 + 1), height};
    total_ += std::uint64_t{pass.row_bytes} * height;
  };
  if (!header.interlaced) set(passes_[0], header.width, header.height);
  for (std::size_t i = 0; i < 7 && header.interlaced; ++i)
    set(passes_[i], steps(header.width, kLeft[i], kAcross[i]), steps(header.height, kTop[i], kDown[i]));
}

std::size_t PngRowSizes::next() {
  while (passes_[pass_].rows == 0) ++pass_;
  --passes_[pass_].rows;
  return passes_[pass_].row_bytes;
}

void PngRows::End::operator()(z_stream* stream) const {
  inflateEnd(stream);
  delete stream;
}

PngRows::PngRows(PngChunks& chunks, Stream stream)
    : chunks_(&chunks), stream_(std::move(stream)), sizes_(chunks.header()), left_(sizes_.total()) {}

Result<PngRows> PngRows::create(PngChunks& chunks) {
  Stream stream(new (std::nothrow) z_stream{});
  if (!stream || inflateInit(stream.get()) != Z_OK) return memory_error();
  inflateValidate(stream.get(), 0);  // the checksum is libdeflate's to make, ten times as fast
  return PngRows(chunks, std::move(stream));
}

// The next piece, but for its last byte: as long as that is due, Pillow goes on asking for rows, too, so they may be
// asked for many at a time.
bool PngRows::refill() {
  if (last_byte_held_) {
    stream_->avail_in = 1;
    last_byte_held_ = false;
    return true;
  }
  const ByteView piece = chunks_->next_image_data();
  if (piece.empty()) return false;
  stream_->next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));
  stream_->avail_in = static_cast<uInt>(piece.size() - 1);
  last_byte_held_ = true;
  return true;
}

// Up to `room` bytes, for which the stream has the place. Where it ends, so must the picture, with the right checksum
// (RFC 1950, 2.2), which is in the same piece as the end.
Result<void> PngRows::inflate_some(std::size_t room) {
  const Bytef* const begin = stream_->next_out;
  stream_->avail_out = static_cast<uInt>(room);
  const int status = inflate(stream_.get(), Z_NO_FLUSH);
  if (status == Z_MEM_ERROR) return memory_error();
  const bool inflates = status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR;
  if (!inflates) return Error{Code::kInvalid, "damaged PNG: its image data does not inflate"};
  const std::size_t count = room - stream_->avail_out;
  checksum_ = libdeflate_adler32(checksum_, begin, count);
  if (status != Z_STREAM_END) return {};
  if (count < left_) return cut_off();
  std::uint32_t stored = 0;
  for (int i = -4; i < 0; ++i) stored = stored << 8 | stream_->next_in[i];
  if (stored != checksum_) return Error{Code::kInvalid, "damaged PNG: the checksum of its image data is wrong"};
  return {};
}

// Hands zlib the rest of the piece without room for more rows: it goes on to the end of its stream and the checksum
// there, if they come next.
Result<void> PngRows::finish_piece() {
  stream_->avail_in += last_byte_held_ ? 1 : 0;
  last_byte_held_ = false;
  return inflate_some(0);
}

void PngRows::advance(std::size_t count) {
  left_ -= count;
  while (count > row_left_) {
    count -= row_left_;
    row_left_ = sizes_.next();
  }
  row_left_ -= count;
}

Result<void> PngRows::read(MutableByteView out) {
  while (!out.empty()) {
    if (row_left_ == 0) row_left_ = sizes_.next();
    const bool row_by_row = !last_byte_held_;
    const std::size_t room = row_by_row ? std::min(row_left_, out.size()) : out.size();
    stream_->next_out = reinterpret_cast<Bytef*>(out.data());
    MILLRACE_TRY_VOID(inflate_some(room));
    const std::size_t count = room - stream_->avail_out;
    out = out.subspan(count);
    advance(count);
    // Without input zlib may still hold the rest of a row that was begun; of another one, nothing is asked for.
    const bool wants_input = count < room || (row_by_row && row_left_ == 0);
    if (wants_input && stream_->avail_in == 0 && left_ > 0 && !refill()) return cut_off();
  }
  if (left_ == 0) return finish_piece();
  return {};
}

}  // namespace millrace
