#include "kernels/raster/gif.h"

#include <algorithm>
#include <string_view>

namespace millrace::kernels::raster {
namespace {

// GIF89a, 18 to 26: what blocks begin with.
constexpr std::uint8_t kExtension = '!', kImage = ',', kEnd = ';';
constexpr std::uint8_t kGraphicControl = 249, kComment = 254, kApplication = 255;
constexpr std::uint8_t kHasPalette = 0x80, kInterlaced = 0x40, kTransparent = 0x01;
constexpr int kMostCodeBits = 12;  // of a code

const char* const kGifCutOff = "cut off: the file ends before the first picture of a GIF";

class Reader {
 public:
  explicit Reader(FileBytes file) : file_(file) {}

  std::size_t at() const { return at_; }
  std::optional<std::uint8_t> byte() {
    if (at_ >= file_.size()) return std::nullopt;
    return file_[at_++];
  }
  // nullopt: there are not so many left.
  std::optional<FileBytes> part(std::size_t bytes) {
    if (bytes > file_.size() - at_) return std::nullopt;
    at_ += bytes;
    return file_.subspan(at_ - bytes, bytes);
  }
  // A block of at most 255 bytes with its length before it, as much of it as there is; empty: the last one.
  FileBytes block() {
    const std::size_t length = byte().value_or(0);
    const std::size_t there = std::min(length, file_.size() - at_);
    at_ += there;
    return file_.subspan(at_ - there, there);
  }
  void skip_blocks() {
    while (!block().empty()) continue;
  }

 private:
  FileBytes file_;
  std::size_t at_ = 0;
};

int u16(FileBytes bytes, std::size_t at) {
  return bytes[at] | bytes[at + 1] << 8;
}

// Whether there is any colour in it that is not its own number in grey.
bool has_colours(FileBytes palette) {
  for (std::size_t i = 0; i < palette.size(); ++i) {
    if (palette[i] != i / 3) return true;
  }
  return false;
}

// Its colours take the place of those before; of a grey one the numbers do.
bool read_palette(Reader& from, std::uint8_t flags, GifHeader& header) {
  const std::optional<FileBytes> colours = from.part(std::size_t{3} << ((flags & 7U) + 1));
  if (!colours) return false;
  header.is_grey = !has_colours(*colours);
  header.palette = header.is_grey ? kGreys : Palette{};
  std::copy(colours->begin(), colours->end(), header.palette.begin());
  return true;
}

// False: it is too short to say what it should.
bool read_extension(Reader& from, GifHeader& header) {
  const std::optional<std::uint8_t> label = from.byte();
  if (!label) return false;
  const FileBytes first = from.block();
  if (label == kGraphicControl && !first.empty()) {
    if (first.size() < 3 || ((first[0] & kTransparent) != 0 && first.size() < 4)) return false;
    if ((first[0] & kTransparent) != 0) header.has_alpha = true, header.around = first[3];
  }
  if (label == kComment && first.empty()) return true;
  if (label == kApplication && !first.empty()) {
    const std::string_view name(reinterpret_cast<const char*>(first.data()), first.size());
    if (name.starts_with("NETSCAPE2.0")) header.is_animated = true, from.block();
  }
  from.skip_blocks();
  return true;
}

// GIF89a, 20: place and size, flags; then maybe a palette, and how many bits a pixel has.
std::string read_image(Reader& from, GifHeader& header) {
  const std::optional<FileBytes> descriptor = from.part(9);
  if (!descriptor) return kGifCutOff;
  header.frame = {u16(*descriptor, 0), u16(*descriptor, 2), u16(*descriptor, 4), u16(*descriptor, 6)};
  const std::uint8_t flags = (*descriptor)[8];
  header.is_interlaced = (flags & kInterlaced) != 0;
  header.canvas = {std::max(header.canvas.width, header.frame.left + header.frame.width),
                   std::max(header.canvas.height, header.frame.top + header.frame.height)};
  if ((flags & kHasPalette) != 0 && !read_palette(from, flags, header)) return kGifCutOff;
  const std::optional<std::uint8_t> bits = from.byte();
  if (!bits) return kGifCutOff;
  if (header.frame.width == 0 || header.frame.height == 0) return "a broken GIF: its first picture has no pixels";
  if (*bits > kMostCodeBits) return "a broken GIF: its codes have more than 12 bits";
  header.code_bits = *bits;
  header.data_at = from.at();
  return {};
}

}  // namespace

bool is_gif(FileBytes file_untrusted) {
  const std::string_view text(reinterpret_cast<const char*>(file_untrusted.data()), file_untrusted.size());
  return text.starts_with("GIF87a") || text.starts_with("GIF89a");
}

std::string read_gif_header(FileBytes file_untrusted, GifHeader& header) {
  Reader from(file_untrusted);
  const std::optional<FileBytes> screen = from.part(13);
  if (!screen) return kGifCutOff;
  header = {.canvas = {u16(*screen, 6), u16(*screen, 8)}, .is_grey = true, .palette = kGreys};
  const std::uint8_t flags = (*screen)[10];
  if ((flags & kHasPalette) != 0 && !read_palette(from, flags, header)) return kGifCutOff;
  for (;;) {
    const std::optional<std::uint8_t> kind = from.byte();
    if (!kind) return kGifCutOff;
    if (*kind == kEnd) return "a broken GIF: there is no picture in it";
    if (*kind == kImage) return read_image(from, header);
    if (*kind == kExtension && !read_extension(from, header)) return "a broken GIF: an extension is too short";
  }
}

}  // namespace millrace::kernels::raster
