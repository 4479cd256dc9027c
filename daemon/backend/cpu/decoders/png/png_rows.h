// The rows of a PNG file as they were before compression, filter bytes and all (PNG 7.2): the image data inflated by
// zlib. Thread-bound(its owner). Memory: zlib's 40 KiB, whatever the file.
//
// The verdict is Pillow's, whose decoder asks zlib for one row at a time out of one piece of the file (PngChunks) at a
// time, and is content once it has the last row. So a wrong Adler-32 counts where it stands in the piece that the last
// row ends in, further data there does not, and a stream whose last piece is used up while rows are still due is cut
// off even where zlib holds them already.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>

#include "daemon/backend/cpu/decoders/png/png_chunks.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

// How many bytes a row has with its filter byte, row after row, pass after pass (PNG 8.2 for interlaced pictures).
class PngRowSizes {
 public:
  explicit PngRowSizes(const PngHeader& header);

  std::uint64_t total() const { return total_; }  // of all rows
  // REQUIRES: not called more often than there are rows.
  std::size_t next();

 private:
  struct Pass {
    std::size_t row_bytes = 0;
    std::uint32_t rows = 0;
  };

  Pass passes_[7];
  std::size_t pass_ = 0;
  std::uint64_t total_ = 0;
};

class PngRows {
 public:
  // `chunks` outlives this. kExhausted: no memory.
  static Result<PngRows> create(PngChunks& chunks);

  std::uint64_t left() const { return left_; }

  // Fills `out` with what comes next. REQUIRES: out.size() <= left(). kInvalid: the data does not inflate, or ends
  // early. kExhausted. With the last byte, what zlib has to say about the rest of the piece is known, too.
  Result<void> read(MutableByteView out);

 private:
  struct End {
    void operator()(z_stream* stream) const;
  };
  using Stream = std::unique_ptr<z_stream, End>;

  PngRows(PngChunks& chunks, Stream stream);

  bool refill();
  Result<void> inflate_some(std::size_t room);
  Result<void> finish_piece();
  void advance(std::size_t count);

  PngChunks* chunks_;
  Stream stream_;
  PngRowSizes sizes_;
  std::uint64_t left_;
  std::size_t row_left_ = 0;     // of the row that is being read
  bool last_byte_held_ = false;  // the piece's, not given to zlib yet
  std::uint32_t checksum_ = 1;   // Adler-32 of what was inflated
};

}  // namespace millrace
