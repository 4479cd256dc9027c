#include "kernels/l3/tile.h"

#include <bit>
#include <cstring>

namespace millrace::kernels::l3 {
namespace {

constexpr std::uint32_t kEveryPair = 0x5555'5555;  // the lower bit of each mode

std::uint32_t with_codes(std::uint32_t modes) {
  return (modes | modes >> 1) & kEveryPair;
}

// Modes of the row pairs that lie below the picture.
std::uint32_t below(int row_pairs) {
  return row_pairs == kRowPairs ? 0 : ~std::uint32_t{0} << (2 * row_pairs);
}

// Modes, codes and payload: `rest` is all that is left of the tile.
TileFault split_coded(const TileShape& shape, FileBytes rest, TileParts& parts) {
  const auto channels = static_cast<std::size_t>(parts.coded_channels);
  if (rest.size() < channels * sizeof(std::uint32_t)) return TileFault::kLength;
  std::memcpy(parts.modes, rest.data(), channels * sizeof(std::uint32_t));
  rest = rest.subspan(channels * sizeof(std::uint32_t));
  const std::uint32_t without = below(shape.row_pairs());
  std::uint32_t wrong = 0;
  for (std::size_t i = 0; i < channels; ++i) {
    wrong |= parts.modes[i] & without;
    if (parts.kind == TileKind::kFew) wrong |= parts.modes[i] & ~kEveryPair;
    parts.code_count += kCodesOfPair * std::popcount(with_codes(parts.modes[i]));
  }
  if (wrong != 0) return TileFault::kMode;
  const auto count = static_cast<std::size_t>(parts.code_count);
  if (rest.size() < count) return TileFault::kLength;
  parts.codes = rest.data();
  parts.payload = rest.data() + count;
  const Book& book = book_of(parts.kind, shape.bytes);
  std::size_t bytes = 0;
  bool is_there = true;
  for (std::size_t i = 0; i < count; ++i) {
    is_there &= parts.codes[i] != kCodes;
    bytes += book.bytes[parts.codes[i]];
  }
  if (!is_there) return TileFault::kCode;
  return rest.size() - count == bytes ? TileFault::kNone : TileFault::kLength;
}

TileFault split_few(const TileShape& shape, FileBytes rest, TileParts& parts) {
  if (rest.empty()) return TileFault::kLength;
  parts.colours = rest.front() + 1;
  const std::size_t palette = static_cast<std::size_t>(parts.colours) * static_cast<std::size_t>(shape.pixel_bytes());
  rest = rest.subspan(1);
  if (rest.size() < palette) return TileFault::kLength;
  parts.palette = rest.data();
  rest = rest.subspan(palette);
  if (parts.colours == 1) return rest.empty() ? TileFault::kNone : TileFault::kLength;
  parts.coded_channels = 1;
  return split_coded(shape, rest, parts);
}

}  // namespace

const char* text_of(TileFault fault) {
  switch (fault) {
    case TileFault::kNone:
      break;
    case TileFault::kKind:
      return "is of a kind that there is not";
    case TileFault::kMode:
      return "has a mode that it cannot have";
    case TileFault::kCode:
      return "has a code that the book does not have";
    case TileFault::kLength:
      return "is not as long as its codes say";
  }
  return "is fine";
}

TileFault split_tile(const TileShape& shape, FileBytes tile_untrusted, TileParts& parts) {
  parts = {};
  if (tile_untrusted.empty()) return TileFault::kLength;
  const unsigned kind = tile_untrusted.front();
  const FileBytes rest = tile_untrusted.subspan(1);
  const bool has_transform = (kind & 3U) == 0 && shape.channels >= 3;
  if ((kind & 3U) == 3 || kind >> 4 != 0 || (kind >> 2 != 0 && !has_transform)) return TileFault::kKind;
  parts.kind = static_cast<TileKind>(kind & 3U);
  parts.transform = static_cast<Transform>(kind >> 2);
  if (parts.kind == TileKind::kFew) return split_few(shape, rest, parts);
  const auto pixel = static_cast<std::size_t>(shape.pixel_bytes());
  if (parts.kind == TileKind::kRaw) {
    parts.payload = rest.data();
    const std::size_t pixels = static_cast<std::size_t>(shape.width) * static_cast<std::size_t>(shape.height);
    return rest.size() == pixels * pixel ? TileFault::kNone : TileFault::kLength;
  }
  if (rest.size() < pixel) return TileFault::kLength;
  parts.origins = rest.data();
  parts.coded_channels = shape.channels;
  return split_coded(shape, rest.subspan(pixel), parts);
}

}  // namespace millrace::kernels::l3
