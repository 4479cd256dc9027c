// Images as blocks, packed and unpacked in every way that this processor has.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/packed/encoder.h"
#include "kernels/packed/packed_image.h"
#include "kernels/packed/unpack.h"
#include "tests/support/host/guarded_bytes.h"

namespace millrace::kernels::packed {

using Bytes = std::vector<std::uint8_t>;

// Blocks in scan order, zig-zag inside, DC as level.
struct Picture {
  jpeg::Header header;
  std::vector<std::int16_t> blocks;

  std::int16_t* block(std::size_t index) { return blocks.data() + index * jpeg::kCoefficients; }
};

// A header of this size, with a table of `quant` everywhere for the first component, and one that differs a little for
// the others.
jpeg::Header make_header(Size size, int components, int h, int v, std::uint16_t quant);
// All coefficients are 0.
Picture make_picture(const jpeg::Header& header);

// What random blocks look like: per mille of the coefficients that are not 0, and their most bits.
struct Draw {
  int density = 200;
  int bits = 5;
  int level_bits = 10;
};
// Blocks that every inverse DCT does alike.
void fill(Picture& picture, const Draw& draw, std::mt19937& random);

// What our entropy decoder makes of a JPEG file; no blocks: it does not take it.
Picture read_picture(std::span<const std::byte> file);

// Encoders and unpackers for each target that this processor has; others are skipped loudly.
std::vector<Target> every_target();

// Empty: refused.
Bytes pack(Encoder& encoder, const Picture& picture);

// A packed image with its padding between pages that may not be touched: the padding ends at the one, or the bytes begin
// at the other.
class Placed {
 public:
  enum class At { kEnd, kBegin };
  explicit Placed(std::span<const std::uint8_t> bytes, At at = At::kEnd);
  std::span<std::uint8_t> bytes() { return bytes_; }

 private:
  GuardedBytes memory_;
  std::span<std::uint8_t> bytes_;
};

// All blocks in scan order. REQUIRES: padding behind the image's bytes.
std::vector<std::int16_t> unpack_all(const PackedImage& image, const Unpacker& unpacker);

// Makes the checksum right again.
void sign(std::span<std::uint8_t> bytes);

}  // namespace millrace::kernels::packed
