#include "kernels/cuda/plan/packed_groups.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "kernels/packed/layout.h"
#include "kernels/packed/shapes.h"

namespace millrace::kernels::cuda {
namespace {

static_assert(packed::kGroupBlocks == kUnpackThreads && packed::layout::kGroupHeadBytes == kPackedGroupHead &&
              packed::layout::kMostGroupBytes == kMostPackedGroup &&
              std::tuple_size_v<packed::Shapes> == kPackedShapes);
static_assert(packed::layout::kLeastStart >= 3);  // bytes before a group that the kernel may look at

PackedShape packed_shape(const packed::Shape& shape) {
  std::uint32_t word = shape.bitmap_bytes << PackedShape::kBitmapShift | shape.nibbles / 8 << PackedShape::kWideShift;
  if (shape.align != 0) word |= PackedShape::kAligned;
  if (shape.raw != 0) return {word | PackedShape::kRaw};
  for (unsigned lane = 0; lane < packed::kLanes; ++lane)
    word |= static_cast<std::uint32_t>((shape.widths >> (8 * lane) & 255) - 1) << (3 * lane);
  return {word};
}

int bytes_of(const packed::Group& group) {
  return static_cast<int>(group.end - group.begin);
}

}  // namespace

std::vector<PackedShape> packed_shapes() {
  std::vector<PackedShape> shapes;
  std::ranges::transform(packed::kShapes, std::back_inserter(shapes), packed_shape);
  return shapes;
}

bool has_usual_groups(const packed::PackedImage& image) {
  for (std::size_t i = 0; i < image.grid().groups(); ++i) {
    const packed::Group group = image.group(i);
    if (bytes_of(group) < kPackedGroupHead + group.blocks || bytes_of(group) > kMostPackedGroup) return false;
  }
  return true;
}

std::uint32_t append_groups(const packed::PackedImage& image, const std::uint8_t* begin, const jpeg::McuWindow& window,
                            std::uint64_t at, std::uint32_t index, std::vector<PackedGroup>& groups) {
  const packed::Grid& grid = image.grid();
  std::uint32_t tokens = 0;
  const auto append = [&](const packed::Group& group, std::int64_t entry, int across) {
    groups.push_back({.bytes = at + static_cast<std::uint64_t>(group.begin - begin),
                      .image = index,
                      .first_token = tokens,
                      .first_entry = static_cast<std::uint32_t>(entry),
                      .byte_count = static_cast<std::uint16_t>(bytes_of(group)),
                      .blocks = static_cast<std::uint8_t>(group.blocks),
                      .across = static_cast<std::uint8_t>(across)});
    tokens += token_room(bytes_of(group), group.blocks);
  };
  for (int line = window.lines.begin; line < window.lines.end; ++line) {
    int in_mcu = 0;  // the number of the row's first block in its MCU
    for (int component = 0; component < grid.components; ++component) {
      const int across = component == 0 ? grid.h : 1;
      const int first = window.columns.begin * across / packed::kGroupBlocks * packed::kGroupBlocks;
      for (int row = 0; row < grid.down(component); ++row, in_mcu += across) {
        for (int column = first; column < window.columns.end * across; column += packed::kGroupBlocks) {
          const std::int64_t mcu = std::int64_t{line - window.lines.begin} * grid.columns + column / across;
          append(image.group(grid.group_of(line, component, row, column)), mcu * grid.blocks_in_mcu() + in_mcu, across);
        }
      }
    }
  }
  return tokens;
}

}  // namespace millrace::kernels::cuda
