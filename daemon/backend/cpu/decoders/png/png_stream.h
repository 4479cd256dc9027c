// A PNG file as libspng gets to see it: the header, the palette in full, and the rows in stored deflate blocks (RFC
// 1951, 3.2.4), for PngRows inflates them and says what the file is worth. libspng undoes the filters and turns rows
// into pixels. Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "daemon/backend/cpu/decoders/png/png_chunks.h"
#include "daemon/backend/cpu/decoders/png/png_rows.h"
#include "proto/base/bytes.h"
#include "proto/base/error.h"

namespace millrace {

class PngStream {
 public:
  // Stored blocks refer to nothing before them, so zlib, within libspng, need not keep more than its least.
  static constexpr int kWindowBits = 9;

  // Both outlive this.
  PngStream(const PngChunks& chunks, PngRows& rows);

  // The next out.size() bytes of the stream. false: it ends before, or error() says why there are no more rows.
  bool read(MutableByteView out);
  const std::optional<Error>& error() const { return error_; }

 private:
  // Signature, IHDR, PLTE, and the chunk with the zlib header: more than stands between any two blocks.
  static constexpr std::size_t kMostBetween = 8 + (12 + 13) + (12 + 768) + (12 + 2);

  void put(std::uint32_t number);
  void put(std::string_view text);
  void begin_chunk(std::size_t length, std::string_view type);
  void put_header(const PngHeader& header);
  void begin_block();

  PngRows& rows_;
  std::uint8_t between_[kMostBetween];  // what stands before the next rows
  std::size_t between_begin_ = 0;
  std::size_t between_end_ = 0;
  std::size_t rows_left_in_block_ = 0;
  std::optional<Error> error_;
};

}  // namespace millrace
