// An L3 file that is anything, as it came and under lengths and checksums made right: nothing is read or written outside,
// every target decodes the same pixels or refuses the same tile, a part is a part of the whole, and what was decoded comes
// back from a file of its own.
#include <cstdlib>

#include "kernels/l3/decoder.h"
#include "kernels/l3/encoding/encoder.h"
#include "kernels/l3/reference.h"
#include "tests/unit/kernels/l3/l3_rig.h"

namespace {

using namespace millrace::kernels;
using namespace millrace::kernels::l3;

constexpr std::size_t kMostTiles = 24;  // larger pictures only take longer

void require(bool holds) {
  if (!holds) std::abort();
}

struct Pixels {
  Size size;
  FormShape shape;
  FileVector data;

  MutableSampleView view() {
    return {data.data(), size, shape.channels, shape.bytes, std::ptrdiff_t{size.width} * shape.channels * shape.bytes};
  }
};

Outcome decode(const Image& image, const Box& box, Form form, Target target, Pixels& pixels) {
  pixels = {{box.width, box.height}, shape_of(image.head(), form), {}};
  const auto pixel = static_cast<std::size_t>(pixels.shape.channels * pixels.shape.bytes);
  pixels.data.assign(static_cast<std::size_t>(box.width) * static_cast<std::size_t>(box.height) * pixel, 0);
  return Decoder(target).decode(image, box, form, {}, pixels.view());
}

void check_reference(const Image& image) {
  for (std::size_t i = 0; i < image.head().tiles(); ++i) {
    alignas(64) std::uint8_t planes[kMostPlaneBytes];
    const TileFault expected = reference::decode_tile(image.tile_shape(i), image.tile(i), planes);
    alignas(64) std::uint8_t others[kMostPlaneBytes];
    const TileShape shape = image.tile_shape(i);
    for (const Target target : available_targets()) {
      require(tile_decoder(target).decode(shape, image.tile(i), others) == expected);
      if (expected != TileFault::kNone) continue;
      for (int row = 0; row < shape.channels * kTileSide; ++row) {
        const int begin = row * kTileSide * shape.bytes;
        if (row % kTileSide < shape.height)
          require(std::equal(planes + begin, planes + begin + shape.width * shape.bytes, others + begin));
      }
    }
  }
}

void check_part(const Image& image, Form form, Pixels& whole_picture, std::size_t salt) {
  const Size size = image.head().size;
  Box box;
  box.left = static_cast<int>(salt % static_cast<std::size_t>(size.width));
  box.top = static_cast<int>(salt / 3 % static_cast<std::size_t>(size.height));
  box.width = 1 + static_cast<int>(salt / 5 % static_cast<std::size_t>(size.width - box.left));
  box.height = 1 + static_cast<int>(salt / 7 % static_cast<std::size_t>(size.height - box.top));
  const std::size_t pixel = static_cast<std::size_t>(whole_picture.shape.channels * whole_picture.shape.bytes);
  for (const Target target : available_targets()) {
    Pixels part;
    require(decode(image, box, form, target, part).is_fine());
    for (int y = 0; y < box.height; ++y) {
      const std::uint8_t* const row =
          whole_picture.view().row(box.top + y) + static_cast<std::size_t>(box.left) * pixel;
      require(std::equal(row, row + static_cast<std::size_t>(box.width) * pixel, part.view().row(y)));
    }
  }
}

void check_writing(const Image& image, Pixels& stored) {
  const Picture picture{.samples = stored.view(),
                        .orientation = image.head().orientation,
                        .palette = image.palette(),
                        .colour_bytes = image.head().colour_bytes};
  FileVector file;
  require(encode(picture, Effort::kBest, best_target(), file).empty());
  const PaddedFile padded(file);
  Image again;
  require(again.read(padded.view(), Check::kChecksums).empty());
  Pixels back;
  require(decode(again, whole(again.head().size), Form::kStored, best_target(), back).is_fine());
  require(back.data == stored.data);
}

void try_file(FileBytes bytes) {
  const PaddedFile file(bytes), other(bytes, 0xFF);
  Image image, beside;
  if (!image.read(file.view(), Check::kChecksums).empty() || image.head().tiles() > kMostTiles) return;
  require(beside.read(other.view(), Check::kShape).empty());
  check_reference(image);
  for (const Form form : {Form::kStored, Form::kShown, Form::kNumbers}) {
    Pixels expected, found;
    const Outcome outcome = decode(image, whole(image.head().size), form, Target::kScalar, expected);
    for (const Target target : available_targets()) {
      const Outcome now = decode(beside, whole(image.head().size), form, target, found);
      require(now.fault == outcome.fault && now.tile == outcome.tile);
      if (outcome.is_fine()) require(found.data == expected.data);
    }
    if (!outcome.is_fine()) continue;
    check_part(image, form, expected, bytes.size() + bytes.back() * std::size_t{977});
    if (form == Form::kStored) check_writing(image, expected);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try_file({data, size});
  FileVector forged(data, data + size);
  if (sign_file(forged)) try_file(forged);
  return 0;
}
