#include "kernels/l3/decoder.h"

#include <algorithm>
#include <cstring>

#include "kernels/l3/tile_decode.h"

namespace millrace::kernels::l3 {
namespace {

// Pixels of a tile that the box meets, and where they go.
struct Meeting {
  int left = 0, top = 0, width = 0, height = 0;  // in the tile
  int to_left = 0, to_top = 0;                   // in `out`
};

Meeting meeting_of(const Box& box, int tile_left, int tile_top) {
  const int left = std::max(box.left, tile_left), top = std::max(box.top, tile_top);
  const int right = std::min(box.left + box.width, tile_left + kTileSide);
  const int bottom = std::min(box.top + box.height, tile_top + kTileSide);
  return {left - tile_left, top - tile_top, right - left, bottom - top, left - box.left, top - box.top};
}

// 16 bits to 8 as Pillow has it: its grey of 16 bits is cut off at 255, all else keeps its upper byte.
std::uint8_t shown(std::uint16_t sample, int channels) {
  if (channels == 1) return static_cast<std::uint8_t>(std::min<std::uint16_t>(sample, 255));
  return static_cast<std::uint8_t>(sample >> 8);
}

// Planes to rows of `out`.
class Store {
 public:
  Store(const Image& image, Form form, const TileDecoder& tiles, const MutableSampleView& out)
      : image_(image), form_(form), tiles_(tiles), out_(out) {}

  void write(const std::uint8_t* planes, const Meeting& part) const {
    for (int y = 0; y < part.height; ++y) {
      std::uint8_t* const to = out_.row(part.to_top + y) + std::ptrdiff_t{part.to_left} * out_.channels * out_.bytes;
      write_row(planes, (part.top + y) * kTileSide + part.left, part.width, to);
    }
  }

 private:
  void write_row(const std::uint8_t* planes, int at, int count, std::uint8_t* to) const {
    const Head& head = image_.head();
    if (head.colours != 0 && form_ == Form::kShown) return write_colours(planes + at, count, to);
    if (head.depth == 16) {
      const auto* const deep = reinterpret_cast<const std::uint16_t*>(planes);
      return form_ == Form::kStored ? mix(deep, at, count, to) : mix_shown(deep, at, count, to);
    }
    if (out_.channels == 1) return std::copy_n(planes + at, count, to), void();
    if (out_.channels == 3)
      return tiles_.interleave(plane(planes, 0) + at, plane(planes, 1) + at, plane(planes, 2) + at, count, to);
    mix(planes, at, count, to);
  }

  // Grey with alpha is shown as RGB.
  const std::uint8_t* plane(const std::uint8_t* planes, int channel) const {
    return planes + (image_.head().channels < out_.channels ? 0 : channel) * kTilePixels;
  }

  // All samples as they are.
  template <class Sample>
  void mix(const Sample* planes, int at, int count, std::uint8_t* to) const {
    for (int x = 0; x < count; ++x) {
      for (int c = 0; c < out_.channels; ++c, to += sizeof(Sample))
        std::memcpy(to, planes + c * kTilePixels + at + x, sizeof(Sample));
    }
  }

  void mix_shown(const std::uint16_t* planes, int at, int count, std::uint8_t* to) const {
    const int channels = image_.head().channels;
    for (int x = 0; x < count; ++x) {
      for (int c = 0; c < out_.channels; ++c)
        *to++ = shown(planes[(channels < out_.channels ? 0 : c) * kTilePixels + at + x], channels);
    }
  }

  // A number that has no colour is black.
  void write_colours(const std::uint8_t* numbers, int count, std::uint8_t* to) const {
    const Head& head = image_.head();
    const std::uint8_t* const palette = image_.palette().data();
    for (int x = 0; x < count; ++x, to += 3) {
      if (numbers[x] < head.colours)
        std::copy_n(palette + numbers[x] * head.colour_bytes, 3, to);
      else
        std::fill_n(to, 3, std::uint8_t{0});
    }
  }

  const Image& image_;
  Form form_;
  const TileDecoder& tiles_;
  const MutableSampleView& out_;
};

}  // namespace

FormShape shape_of(const Head& head, Form form) {
  if (form == Form::kStored) return {head.channels, head.bytes()};
  const bool is_grey = head.channels == 1 && (head.colours == 0 || form == Form::kNumbers);
  return {is_grey ? 1 : 3, 1};
}

std::string text_of(const Outcome& outcome) {
  return "tile " + std::to_string(outcome.tile) + " " + text_of(outcome.fault);
}

const TileDecoder& tile_decoder(Target target) {
  static constexpr TileDecoder kScalar{decode_tile_scalar, interleave_scalar};
#if defined(__x86_64__)
  static constexpr TileDecoder kAvx2{decode_tile_avx2, interleave_avx2}, kAvx512{decode_tile_avx512, interleave_avx512};
  if (target == Target::kAvx512) return kAvx512;
  if (target != Target::kScalar) return kAvx2;
#else
  static_cast<void>(target);
#endif
  return kScalar;
}

Outcome Decoder::decode(const Image& image, const Box& box, Form form, const Deadline& deadline,
                        const MutableSampleView& out) {
  const Head& head = image.head();
  const Store store(image, form, tiles_, out);
  for (int row = box.top / kTileSide; row * kTileSide < box.top + box.height; ++row) {
    if (deadline.is_over()) return {.is_late = true};
    for (int column = box.left / kTileSide; column * kTileSide < box.left + box.width; ++column) {
      const auto index =
          static_cast<std::size_t>(row) * static_cast<std::size_t>(head.across()) + static_cast<std::size_t>(column);
      const TileFault fault = tiles_.decode(image.tile_shape(index), image.tile(index), planes_);
      if (fault != TileFault::kNone) return {fault, index, false};
      store.write(planes_, meeting_of(box, column * kTileSide, row * kTileSide));
    }
  }
  return {};
}

}  // namespace millrace::kernels::l3
