// What the decoders of the CPU backend have in common: encoded bytes in, the pixels of one box out, 8 bits a sample,
// one channel (grey files) or three (all others, RGB), as Pillow's Image.open(...).convert("RGB") has them. README.md
// lists where they differ from Pillow.
//
// The bytes are hostile. A decoder reads nothing outside them, writes nothing outside its buffer, and gives up when
// the deadline is over. Each says which damage is an error, and what it looks at beyond the box.
//
// Thread-safe: pure functions of their arguments; a buffer belongs to one lane.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/backend/cpu/decoders/pixel_buffer.h"
#include "kernels/base/deadline.h"
#include "kernels/base/image_view.h"
#include "kernels/base/target.h"
#include "kernels/packed/packed_image.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

class IndexUse;  // daemon/cache/index_use.h

// Whose image it is, for a decoder that must not show one user's to another.
struct Origin {
  enum class Audience : std::uint8_t {
    kUser,       // the user who asked for it
    kEverybody,  // what is made of it is kept for all who may read the file
  };
  std::uint32_t user = 0;
  Audience audience = Audience::kUser;
};

struct DecodeRequest {
  ByteView bytes_untrusted;
  kernels::Size stored;  // from the header, checked against the limits; a decoder that finds another size says kInvalid
  kernels::Box box;      // wanted; REQUIRES: inside `stored`, not empty
  kernels::Deadline deadline;
  IndexUse* index = nullptr;  // of a JPEG file; nullptr: none is used or made
  Bytes codec;                // what the codec may take beside the pixels, as it was charged; 0: not known
  // 2, 4 or 8: so many times fewer samples a side, rounded up, of which `box` counts. By libjpeg-turbo alone.
  int reduction = 1;
  // A JPEG file's packed form, which our decoder takes in the file's place; nullptr: there is none.
  const kernels::packed::PackedImage* packed = nullptr;
  Origin origin{};
  // Of a palette the indices, not its colours, one channel; of grey the levels. Of a file that has neither an error, or
  // pixels of three channels. By the decoders that say so (decoder_table.h).
  bool indices = false;
  kernels::Target target = kernels::best_target();  // of PNG; of JPEG the lane's decoder has its own

  // Whether the picture's verdict is wanted, not a part's: then what follows the image's data counts, too.
  bool is_whole() const {
    const auto reduced = [this](int side) { return (side + reduction - 1) / reduction; };
    return box == kernels::Box{0, 0, reduced(stored.width), reduced(stored.height)};
  }
};

using Clock = std::chrono::steady_clock;

inline Error deadline_error() {
  return {Code::kDeadline,
          "decoding and transforming it took longer than the time limit for one sample (limits.time_milliseconds)"};
}
inline Error memory_error() {
  return {Code::kExhausted, "no memory is left for decoding this image"};
}

// Of what was asked for indices: nothing in it, and levels that were spread or cut to 8 bits.
inline Error coloured_error() {
  return {Code::kInvalid,
          "has no indices (recipe.indices): store it as PNG, BMP, GIF or TIFF, with a palette or in grey of 8 bits, or "
          "as lossless WebP in grey"};
}
inline Error levels_error(const std::string& what) {
  return {Code::kInvalid, what + ", whose levels are no indices: store it in 8 bits, or with a palette"};
}

inline std::string to_text(kernels::Size size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}
inline Error size_error(kernels::Size expected, kernels::Size found) {
  return {Code::kInvalid, "the decoder finds " + to_text(found) + " pixels where the header says " + to_text(expected)};
}

}  // namespace millrace
