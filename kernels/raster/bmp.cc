#include "kernels/raster/bmp.h"

#include <algorithm>
#include <optional>

namespace millrace::kernels::raster {
namespace {

constexpr std::size_t kInfoAt = 14;  // behind "BM", the file's size, four bytes and where the pixels begin
constexpr std::uint32_t kRows = 0, kRle8 = 1, kRle4 = 2, kBitFields = 3;  // BITMAPINFOHEADER's biCompression
constexpr std::uint32_t kCoreHeader = 12;

const char* const kCutOff = "cut off: the file ends within the header of a BMP picture";

class Fields {
 public:
  explicit Fields(FileBytes file) : file_(file) {}

  std::uint32_t u16(std::size_t at) const { return byte(at) | byte(at + 1) << 8U; }
  std::uint32_t u32(std::size_t at) const { return u16(at) | u16(at + 2) << 16U; }
  std::uint8_t u8(std::size_t at) const { return static_cast<std::uint8_t>(byte(at)); }

 private:
  std::uint32_t byte(std::size_t at) const { return at < file_.size() ? file_[at] : 0U; }

  FileBytes file_;
};

struct Info {
  std::uint32_t bytes = 0, compression = kRows, colours = 0;
  std::size_t colour_bytes = 4;  // of the palette
};

// --- layouts of pixels ---

struct Masks {
  std::uint32_t red, green, blue, alpha;
};

struct ByteLayout {
  Masks masks;
  std::uint8_t red, green, blue;
  bool has_alpha;
};

// Of 32 bits, those that Pillow knows.
constexpr ByteLayout kLayouts[] = {
    {{0xFF0000, 0xFF00, 0xFF, 0}, 2, 1, 0, false},         {{0xFF000000, 0xFF0000, 0xFF00, 0}, 3, 2, 1, false},
    {{0xFF000000, 0xFF00, 0xFF, 0}, 3, 1, 0, false},       {{0xFF000000, 0xFF0000, 0xFF00, 0xFF}, 3, 2, 1, true},
    {{0xFF, 0xFF00, 0xFF0000, 0xFF000000}, 0, 1, 2, true}, {{0xFF0000, 0xFF00, 0xFF, 0xFF000000}, 2, 1, 0, true},
    {{0xFF000000, 0xFF00, 0xFF, 0xFF0000}, 3, 1, 0, true}, {{0, 0, 0, 0}, 2, 1, 0, true},
};

// They follow a header of 40 bytes, and are part of a longer one; alpha's from 56 bytes on.
Masks masks_of(const Fields& fields, const Info& info) {
  constexpr std::size_t kAt = kInfoAt + 40;
  return {fields.u32(kAt), fields.u32(kAt + 4), fields.u32(kAt + 8), info.bytes >= 56 ? fields.u32(kAt + 12) : 0};
}

std::string set_bit_fields(const Masks& masks, BmpHeader& header) {
  const auto are = [&](std::uint32_t red, std::uint32_t green, std::uint32_t blue) {
    return masks.red == red && masks.green == green && masks.blue == blue;
  };
  if (header.bits == 32) {
    for (const ByteLayout& layout : kLayouts) {
      const Masks& own = layout.masks;
      if (!are(own.red, own.green, own.blue) || masks.alpha != own.alpha) continue;
      header.red = layout.red, header.green = layout.green, header.blue = layout.blue;
      header.has_alpha = layout.has_alpha;
      return {};
    }
  }
  if (header.bits == 24 && are(0xFF0000, 0xFF00, 0xFF)) return {};
  if (header.bits == 16 && are(0x7C00, 0x3E0, 0x1F)) return {};
  if (header.bits == 16 && are(0xF800, 0x7E0, 0x1F)) {
    header.pixels = BmpHeader::Pixels::kSixFive;
    return {};
  }
  return "this kind of BMP is not decoded here: its colours lie in bits of their own choice (bit fields)";
}

std::string set_pixels(const Fields& fields, const Info& info, BmpHeader& header) {
  using Pixels = BmpHeader::Pixels;
  header.pixels = header.bits <= 8 ? Pixels::kIndex : header.bits == 16 ? Pixels::kFiveFive : Pixels::kBytes;
  header.red = 2, header.green = 1, header.blue = 0;
  const bool is_indexed = header.pixels == Pixels::kIndex;
  if (info.compression == kRows) return {};
  if (info.compression == kBitFields && !is_indexed) return set_bit_fields(masks_of(fields, info), header);
  if ((info.compression == kRle8 || info.compression == kRle4) && is_indexed) {
    header.coding = info.compression == kRle8 ? BmpHeader::Coding::kRle8 : BmpHeader::Coding::kRle4;
    return {};
  }
  return "this kind of BMP is not decoded here: " + std::to_string(header.bits) + " bits a pixel, compression " +
         std::to_string(info.compression);
}

// --- header ---

std::string set_size(const Fields& fields, const Info& info, BmpHeader& header) {
  if (info.bytes == kCoreHeader) {
    header.width = fields.u16(kInfoAt + 4);
    header.height = fields.u16(kInfoAt + 6);
    return {};
  }
  header.width = fields.u32(kInfoAt + 4);
  const std::uint32_t height = fields.u32(kInfoAt + 8);
  header.is_bottom_up = (height >> 24U) != 0xFF;  // a negative height, of less than 2^24 rows
  header.height = header.is_bottom_up ? height : 0U - height;
  if (header.width > kLargestSide || header.height > kLargestSide) return "a broken BMP: its size makes no sense";
  return {};
}

// Returns where it ends. Whether it is grey goes by the entries alone, as in Pillow.
std::size_t read_palette(FileBytes file, const Info& info, BmpHeader& header) {
  const std::size_t begin = kInfoAt + info.bytes;
  bool is_grey = true;
  for (std::size_t i = 0; i < info.colours; ++i) {
    const std::size_t at = begin + i * info.colour_bytes;
    const auto grey = static_cast<std::uint8_t>(info.colours == 2 ? i * 255 : i);
    const bool is_there = at + 3 <= file.size();
    is_grey = is_grey && is_there && file[at] == grey && file[at + 1] == grey && file[at + 2] == grey;
    if (!is_there || i >= 256) continue;
    header.palette[3 * i] = file[at + 2], header.palette[3 * i + 1] = file[at + 1],
                       header.palette[3 * i + 2] = file[at];
  }
  header.is_grey = is_grey;
  if (is_grey && info.colours <= 2) std::fill_n(header.palette.begin() + 3, 3, std::uint8_t{255});
  if (is_grey && info.colours > 2) header.palette = kGreys;
  return std::min(file.size(), begin + info.colours * info.colour_bytes);
}

// --- rows ---

// One pixel's number in a row of 1, 4 or 8 bits each, the first in the upper bits of a byte.
std::uint8_t index_at(const std::uint8_t* row, int x, int bits) {
  if (bits == 8) return row[x];
  if (bits == 4) return row[x / 2] >> (x % 2 == 0 ? 4 : 0) & 15;
  return row[x / 8] >> (7 - x % 8) & 1;
}

void read_indices(const BmpHeader& header, const std::uint8_t* row, int left, MutableU8View out) {
  std::uint8_t* to = out.data;
  for (int x = 0; x < out.width; ++x, to += out.channels) {
    const std::uint8_t* const colour = header.palette.data() + 3 * index_at(row, left + x, header.bits);
    for (int c = 0; c < out.channels; ++c) to[c] = colour[c];
  }
}

void read_words(const std::uint8_t* row, int green_bits, MutableU8View out) {
  const unsigned most_green = (1U << green_bits) - 1;
  std::uint8_t* to = out.data;
  for (int x = 0; x < out.width; ++x, row += 2, to += 3) {
    const unsigned word = row[0] | static_cast<unsigned>(row[1]) << 8U;
    to[0] = static_cast<std::uint8_t>((word >> (5 + green_bits) & 31U) * 255 / 31);
    to[1] = static_cast<std::uint8_t>((word >> 5U & most_green) * 255 / most_green);
    to[2] = static_cast<std::uint8_t>((word & 31U) * 255 / 31);
  }
}

void read_bytes(const BmpHeader& header, const std::uint8_t* row, MutableU8View out) {
  std::uint8_t* to = out.data;
  const int pixel = header.bits / 8;
  for (int x = 0; x < out.width; ++x, row += pixel, to += 3) {
    to[0] = row[header.red];
    to[1] = row[header.green];
    to[2] = row[header.blue];
  }
}

}  // namespace

bool is_bmp(FileBytes file_untrusted) {
  return file_untrusted.size() >= 2 && file_untrusted[0] == 'B' && file_untrusted[1] == 'M';
}

std::string read_bmp_header(FileBytes file_untrusted, BmpHeader& header) {
  const Fields fields(file_untrusted);
  Info info{.bytes = fields.u32(kInfoAt)};
  constexpr std::uint32_t kKnown[] = {kCoreHeader, 40, 52, 56, 64, 108, 124};
  const bool is_known = std::find(std::begin(kKnown), std::end(kKnown), info.bytes) != std::end(kKnown);
  if (file_untrusted.size() < kInfoAt + (is_known ? info.bytes : 4)) return kCutOff;
  if (!is_known)
    return "this kind of BMP is not decoded here: its header is " + std::to_string(info.bytes) + " bytes long";
  if (std::string wrong = set_size(fields, info, header); !wrong.empty()) return wrong;
  header.bits = static_cast<int>(fields.u16(kInfoAt + (info.bytes == kCoreHeader ? 10 : 14)));
  if (info.bytes == kCoreHeader) {
    info.colour_bytes = 3;
  } else {
    info.compression = fields.u32(kInfoAt + 16);
    info.colours = fields.u32(kInfoAt + 32);
  }
  constexpr int kDepths[] = {1, 4, 8, 16, 24, 32};
  if (std::find(std::begin(kDepths), std::end(kDepths), header.bits) == std::end(kDepths))
    return "this kind of BMP is not decoded here: " + std::to_string(header.bits) + " bits a pixel";
  if (std::string wrong = set_pixels(fields, info, header); !wrong.empty()) return wrong;
  header.data_at = fields.u32(10);
  std::size_t behind = kInfoAt + info.bytes + (info.compression == kBitFields && info.bytes < 52 ? 12 : 0);
  if (header.pixels == BmpHeader::Pixels::kIndex) {
    constexpr std::uint32_t kMostColours = 256;
    if (info.colours == 0) info.colours = 1U << static_cast<unsigned>(header.bits);
    if (info.colours > kMostColours) return "a broken BMP: its palette has more than 256 colours";
    // Some writers forget the palette when they say where the pixels begin.
    if (header.data_at == kInfoAt + info.bytes) header.data_at += info.colours * info.colour_bytes;
    behind = read_palette(file_untrusted, info, header);
  }
  if (header.data_at == 0) header.data_at = behind;
  return {};
}

void read_bmp_row(const BmpHeader& header, const std::uint8_t* row, int left, MutableU8View out) {
  switch (header.pixels) {
    case BmpHeader::Pixels::kIndex:
      return read_indices(header, row, left, out);
    case BmpHeader::Pixels::kFiveFive:
      return read_words(row + std::ptrdiff_t{left} * 2, 5, out);
    case BmpHeader::Pixels::kSixFive:
      return read_words(row + std::ptrdiff_t{left} * 2, 6, out);
    case BmpHeader::Pixels::kBytes:
      return read_bytes(header, row + std::ptrdiff_t{left} * (header.bits / 8), out);
  }
}

}  // namespace millrace::kernels::raster
