#include "daemon/backend/cpu/decoders/png/png_stream.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace millrace {
namespace {

using namespace std::string_view_literals;

// libspng reads 8 KiB of a chunk at a time; a block's header and its rows come in one go.
constexpr std::size_t kBlockHeader = 5;
constexpr std::size_t kBlock = 8192 - kBlockHeader;

}  // namespace

PngStream::PngStream(const PngChunks& chunks, PngRows& rows) : rows_(rows) {
  const PngHeader& header = chunks.header();
  put("\x89PNG\r\n\x1A\n"sv);
  put_header(header);
  if (header.colour == PngColour::kPalette) {
    const std::size_t bytes = (std::size_t{1} << header.bit_depth) * 3;
    begin_chunk(bytes, "PLTE"sv);
    put({reinterpret_cast<const char*>(chunks.palette().data()), bytes});
    put(0);
  }
  begin_chunk(2, "IDAT"sv);
  put("\x18\x19"sv);  // RFC 1950, 2.2: deflate, a window of 1 << kWindowBits bytes, no dictionary
  put(0);
}

void PngStream::put(std::string_view text) {
  std::memcpy(between_ + between_end_, text.data(), text.size());
  between_end_ += text.size();
}

void PngStream::put(std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) between_[between_end_++] = static_cast<std::uint8_t>(number >> shift);
}

void PngStream::begin_chunk(std::size_t length, std::string_view type) {
  put(static_cast<std::uint32_t>(length));
  put(type);
}

void PngStream::put_header(const PngHeader& header) {
  begin_chunk(13, "IHDR"sv);
  put(header.width);
  put(header.height);
  const char rest[] = {static_cast<char>(header.bit_depth), static_cast<char>(header.colour), 0, 0,
                       static_cast<char>(header.interlaced ? 1 : 0)};
  put(std::string_view(rest, sizeof rest));
  put(0);
}

void PngStream::begin_block() {
  between_begin_ = between_end_ = 0;
  const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(rows_.left(), kBlock));
  begin_chunk(kBlockHeader + bytes, "IDAT"sv);
  const auto low = static_cast<char>(bytes & 0xFF), high = static_cast<char>(bytes >> 8);
  const char block[] = {static_cast<char>(bytes == rows_.left() ? 1 : 0), low, high, static_cast<char>(~low),
                        static_cast<char>(~high)};
  put(std::string_view(block, sizeof block));
  rows_left_in_block_ = bytes;
}

bool PngStream::read(MutableByteView out) {
  while (!out.empty()) {
    if (between_begin_ < between_end_) {
      const std::size_t count = std::min(out.size(), between_end_ - between_begin_);
      std::memcpy(out.data(), between_ + between_begin_, count);
      between_begin_ += count;
      out = out.subspan(count);
    } else if (rows_left_in_block_ > 0) {
      const std::size_t count = std::min(out.size(), rows_left_in_block_);
      const Result<void> read = rows_.read(out.first(count));
      if (!read) error_ = read.error();
      if (!read) return false;
      rows_left_in_block_ -= count;
      out = out.subspan(count);
      if (rows_left_in_block_ == 0) {
        between_begin_ = between_end_ = 0;
        put(0);  // checksum
      }
    } else if (rows_.left() > 0) {
      begin_block();
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace millrace
