// From an Image to pixels: a box is decoded from the tiles that it meets alone. All targets make the same pixels of all
// bytes, and refuse the same tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/deadline.h"
#include "kernels/base/image_view.h"
#include "kernels/base/target.h"
#include "kernels/l3/image.h"
#include "kernels/l3/samples.h"

namespace millrace::kernels::l3 {

// What becomes of samples.
enum class Form : std::uint8_t {
  kStored,  // all channels, of 8 or 16 bits, and of a palette the numbers
  kShown,  // 8 bits; grey: one channel; all others: RGB. Alpha is dropped, a palette looked up; README.md says how 16 bits
           // become 8
  kNumbers,  // as kShown, but of a palette the numbers: one channel
};
struct FormShape {
  int channels = 0;
  int bytes = 0;  // of a sample
};
FormShape shape_of(const Head& head, Form form);

struct Outcome {
  TileFault fault = TileFault::kNone;
  std::size_t tile = 0;  // that has the fault
  bool is_late = false;  // the deadline was over

  bool is_fine() const { return fault == TileFault::kNone && !is_late; }
};
// "tile 7 has a code that the book does not have". REQUIRES: a fault.
std::string text_of(const Outcome& outcome);

// One tile to planes: TileShape::channels planes of 32 x 32 samples, row by row, of bytes or of 16 bits in the processor's
// order; a tile that the picture cuts as well, whose other samples have some value. `planes` is aligned to 64 bytes and
// has kMostPlaneBytes. REQUIRES: 64 readable bytes behind the tile.
inline constexpr std::size_t kMostPlaneBytes = std::size_t{kMostChannels} * kTilePixels * 2;
struct TileDecoder {
  TileFault (*decode)(const TileShape& shape, FileBytes tile_untrusted, std::uint8_t* planes);
  // `count` pixels, at most 32, of three planes to RGB.
  void (*interleave)(const std::uint8_t* red, const std::uint8_t* green, const std::uint8_t* blue, int count,
                     std::uint8_t* out);
};
// REQUIRES: is_available(target).
const TileDecoder& tile_decoder(Target target);

// Thread-bound(its owner). Allocates nothing.
class Decoder {
 public:
  explicit Decoder(Target target = best_target()) : tiles_(tile_decoder(target)) {}

  // Writes `out`, whose size is the box's and whose channels and bytes are those of shape_of(). Not all of it after an
  // outcome that is not fine. REQUIRES: the box is not empty and lies in the picture.
  Outcome decode(const Image& image, const Box& box, Form form, const Deadline& deadline, const MutableSampleView& out);

 private:
  const TileDecoder& tiles_;
  alignas(64) std::uint8_t planes_[kMostPlaneBytes];
};

}  // namespace millrace::kernels::l3
