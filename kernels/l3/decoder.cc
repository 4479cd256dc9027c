#include "kernels/l3/decoder.h"

#include <algorithm>
#include <cstring>

#include "kernels/l3/reference.h"

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
  Store(const Image& image, Form form, const MutableSampleView& out) : image_(image), form_(form), out_(out) {}

  void write(const std::uint8_t* planes, const Meeting& part) const {
    for (int y = 0; y < part.height; ++y) {
      std::uint8_t* to = out_.row(part.to_top + y) + part.to_left * out_.channels * out_.bytes;
      for (int x = 0; x < part.width; ++x, to += out_.channels * out_.bytes)
        write_pixel(planes, (part.top + y) * kTileSide + part.left + x, to);
    }
  }

 private:
  void write_pixel(const std::uint8_t* planes, int at, std::uint8_t* to) const {
    const Head& head = image_.head();
    const int bytes = head.bytes();
    if (head.colours != 0 && form_ == Form::kShown) return write_colour(planes[at], to);
    for (int c = 0; c < out_.channels; ++c) {
      const int from = head.channels < out_.channels ? 0 : c;  // grey with alpha is shown as RGB
      const std::uint8_t* const sample = planes + (from * kTilePixels + at) * bytes;
      if (bytes == 1 || form_ == Form::kStored) {
        std::memcpy(to + c * bytes, sample, static_cast<std::size_t>(bytes));
        continue;
      }
      std::uint16_t deep = 0;
      std::memcpy(&deep, sample, sizeof deep);
      to[c] = shown(deep, head.channels);
    }
  }

  // A number that has no colour is black.
  void write_colour(int number, std::uint8_t* to) const {
    if (number >= image_.head().colours) return std::fill_n(to, 3, std::uint8_t{0}), void();
    std::copy_n(image_.palette().data() + number * image_.head().colour_bytes, 3, to);
  }

  const Image& image_;
  Form form_;
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
  static constexpr TileDecoder kReference{reference::decode_tile};
  static_cast<void>(target);
  return kReference;
}

Outcome Decoder::decode(const Image& image, const Box& box, Form form, const Deadline& deadline,
                        const MutableSampleView& out) {
  const Head& head = image.head();
  const Store store(image, form, out);
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
