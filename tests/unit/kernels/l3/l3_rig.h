// L3 files for tests: padded, changed, and signed again.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/hash.h"
#include "kernels/l3/head_fields.h"
#include "kernels/l3/image.h"

namespace millrace::kernels::l3 {

using FileVector = std::vector<std::uint8_t>;

// A file and kPadding bytes behind it, in a block of its own size, so that reading one byte too far is seen.
class PaddedFile {
 public:
  explicit PaddedFile(FileBytes file, std::uint8_t padding = 0xA5)
      : bytes_(file.begin(), file.end()), size_(file.size()) {
    bytes_.resize(size_ + kPadding, padding);
    bytes_.shrink_to_fit();
  }
  FileBytes view() const { return FileBytes(bytes_).first(size_); }

 private:
  FileVector bytes_;
  std::size_t size_;
};

inline void put_number(std::uint64_t number, int bytes, std::size_t at, FileVector& file) {
  for (int i = 0; i < bytes; ++i) file[at + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(number >> (8 * i));
}

// Makes the length of the tiles and both checksums right for the bytes that are there. False: the head is refused for
// another reason.
inline bool sign_file(FileVector& file) {
  Head head;
  if (file.size() < kHeadBytes) return false;
  const std::string wrong = read_head(file, Check::kShape, head);
  if (!wrong.empty() && head.data_at() > file.size()) return false;
  const std::size_t data_at = head.data_at();
  if (data_at > file.size()) return false;
  put_number(file.size() - data_at, 8, field::kDataBytes, file);
  put_number(xxh3_64(FileBytes(file).subspan(data_at), 0), 8, field::kDataChecksum, file);
  const std::uint64_t seed = xxh3_64(FileBytes(file).first(field::kHeadChecksum), 0);
  put_number(xxh3_64(FileBytes(file).subspan(kHeadBytes, data_at - kHeadBytes), seed), 8, field::kHeadChecksum, file);
  return true;
}

}  // namespace millrace::kernels::l3
