// L3 version 1, as its authors published it (README.md, "Version 1"): RGB of 8 bits in patches of N x N pixels, without a
// checksum. Read, and written where it can hold the picture without loss.
//
// The bytes are hostile. There is no checksum: a patch whose rows do not add up to its size is refused, and any other
// change makes other pixels. Thread-safe: values, and plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/deadline.h"
#include "kernels/base/image_view.h"
#include "kernels/l3/encoding/encoder.h"

namespace millrace::kernels::l3 {

// The first bytes of a file tell it.
bool is_version1(FileBytes file_untrusted);

struct Version1Head {
  Size size;
  int patch = 0;  // pixels a side: 32, 64 or 128, of which both sides are multiples

  std::size_t patches() const {
    return static_cast<std::size_t>(size.width / patch) * static_cast<std::size_t>(size.height / patch);
  }
};

// Empty: fine. Otherwise what is wrong, for a sentence ("cut off"); `head` means nothing then. REQUIRES: is_version1().
std::string read_version1_head(FileBytes file_untrusted, Version1Head& head);

// Borrows the bytes. Allocates 12 bytes a patch, which the file's length bounds.
class Version1Image {
 public:
  // The same of all but the patches themselves: the file has all of them, and ends with the last one.
  std::string read(FileBytes file_untrusted);

  const Version1Head& head() const { return head_; }

  enum class Outcome : std::uint8_t { kFine, kBroken, kLate };
  // Writes `out`: 3 channels of 8 bits, of the box's size. kBroken: a patch that the box meets is; not all is written.
  // REQUIRES: the box is not empty and lies in the picture.
  Outcome decode(const Box& box, const Deadline& deadline, const MutableSampleView& out) const;

 private:
  FileBytes patch(int channel, std::size_t index) const;

  Version1Head head_;
  FileBytes file_;
  std::vector<std::uint32_t> ends_;  // of patches, within the data, channel by channel
  std::size_t data_at_ = 0;
};

// Empty: `out` is the file. Otherwise what version 1 cannot hold, for a sentence: "sides that are no multiple of 64". The
// authors' decoder reads patches of 64 pixels alone.
inline constexpr int kVersion1Patch = 64;
std::string encode_version1(const Picture& picture, std::vector<std::uint8_t>& out, int patch = kVersion1Patch);

}  // namespace millrace::kernels::l3
