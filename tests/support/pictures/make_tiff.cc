// TIFF files by libtiff, in memory.
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

struct Memory {
  std::vector<std::byte> bytes;
  std::uint64_t at = 0;

  static Memory& of(thandle_t handle) { return *static_cast<Memory*>(handle); }
  static tmsize_t read(thandle_t handle, void* out, tmsize_t wanted) {
    Memory& memory = of(handle);
    const auto there =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(wanted),
                                memory.bytes.size() - std::min<std::uint64_t>(memory.at, memory.bytes.size()));
    std::memcpy(out, memory.bytes.data() + memory.at, there);
    memory.at += there;
    return static_cast<tmsize_t>(there);
  }
  static tmsize_t write(thandle_t handle, void* data, tmsize_t count) {
    Memory& memory = of(handle);
    const auto bytes = static_cast<std::uint64_t>(count);
    memory.bytes.resize(std::max<std::uint64_t>(memory.bytes.size(), memory.at + bytes));
    std::memcpy(memory.bytes.data() + memory.at, data, bytes);
    memory.at += bytes;
    return count;
  }
  static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    Memory& memory = of(handle);
    memory.at = offset + (whence == SEEK_CUR ? memory.at : whence == SEEK_END ? memory.bytes.size() : 0);
    return memory.at;
  }
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t handle) { return of(handle).bytes.size(); }
};

constexpr std::uint32_t kTileWidth = 32, kTileHeight = 16;

void set_up(TIFF* tiff, const TiffSpec& spec) {
  const Pixels& pixels = spec.pixels;
  const auto number = [&](std::uint32_t tag, int value) { TIFFSetField(tiff, tag, value); };
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, pixels.width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, pixels.height);
  number(TIFFTAG_BITSPERSAMPLE, spec.bit_depth);
  number(TIFFTAG_SAMPLESPERPIXEL, static_cast<int>(pixels.channels));
  number(TIFFTAG_COMPRESSION, spec.compression);
  number(TIFFTAG_PLANARCONFIG, spec.planes ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  const bool is_ycc = spec.compression == COMPRESSION_JPEG && pixels.channels == 3;
  number(TIFFTAG_PHOTOMETRIC, spec.inks             ? PHOTOMETRIC_SEPARATED
                              : is_ycc              ? PHOTOMETRIC_YCBCR
                              : pixels.channels < 3 ? PHOTOMETRIC_MINISBLACK
                                                    : PHOTOMETRIC_RGB);
  if (is_ycc) number(TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  std::uint16_t alpha = EXTRASAMPLE_UNASSALPHA;
  if (pixels.channels % 2 == 0 && !spec.inks) TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &alpha);
  if (spec.orientation != 0) number(TIFFTAG_ORIENTATION, spec.orientation);
  if (spec.tiled) {
    number(TIFFTAG_TILEWIDTH, kTileWidth);
    number(TIFFTAG_TILELENGTH, kTileHeight);
  } else {
    number(TIFFTAG_ROWSPERSTRIP, 16);
  }
}

// Samples of one row, of all channels or one, in the processor's byte order.
std::vector<std::uint8_t> row_of(const TiffSpec& spec, std::uint32_t y, std::uint32_t left, std::uint32_t count,
                                 int channel) {
  const Pixels& pixels = spec.pixels;
  std::vector<std::uint8_t> row;
  for (std::uint32_t x = left; x < left + count; ++x) {
    for (std::uint32_t c = 0; c < pixels.channels; ++c) {
      if (channel >= 0 && c != static_cast<std::uint32_t>(channel)) continue;
      const bool is_there = x < pixels.width && y < pixels.height;
      const std::uint8_t value = is_there ? pixels.data[(std::size_t{y} * pixels.width + x) * pixels.channels + c] : 0;
      if (spec.bit_depth == 16) row.push_back(static_cast<std::uint8_t>(~value));
      row.push_back(value);
    }
  }
  return row;
}

bool write_rows(TIFF* tiff, const TiffSpec& spec, int channel) {
  const auto plane = static_cast<std::uint16_t>(std::max(channel, 0));
  for (std::uint32_t y = 0; y < spec.pixels.height; ++y) {
    std::vector<std::uint8_t> row = row_of(spec, y, 0, spec.pixels.width, channel);
    if (TIFFWriteScanline(tiff, row.data(), y, plane) != 1) return false;
  }
  return true;
}

bool write_tiles(TIFF* tiff, const TiffSpec& spec, int channel) {
  for (std::uint32_t top = 0; top < spec.pixels.height; top += kTileHeight) {
    for (std::uint32_t left = 0; left < spec.pixels.width; left += kTileWidth) {
      std::vector<std::uint8_t> tile;
      for (std::uint32_t y = top; y < top + kTileHeight; ++y) {
        const std::vector<std::uint8_t> row = row_of(spec, y, left, kTileWidth, channel);
        tile.insert(tile.end(), row.begin(), row.end());
      }
      if (TIFFWriteTile(tiff, tile.data(), left, top, 0, static_cast<std::uint16_t>(std::max(channel, 0))) < 0)
        return false;
    }
  }
  return true;
}

}  // namespace

std::vector<std::byte> make_tiff(const TiffSpec& spec) {
  Memory memory;
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff(
      TIFFClientOpen("made", "w", &memory, Memory::read, Memory::write, Memory::seek, Memory::close, Memory::size,
                     nullptr, nullptr),
      TIFFClose);
  if (!tiff) throw std::runtime_error("test image: TIFFClientOpen failed");
  set_up(tiff.get(), spec);
  const int planes = spec.planes ? static_cast<int>(spec.pixels.channels) : 1;
  for (int plane = 0; plane < planes; ++plane) {
    const int channel = spec.planes ? plane : -1;
    if (!(spec.tiled ? write_tiles(tiff.get(), spec, channel) : write_rows(tiff.get(), spec, channel)))
      throw std::runtime_error("test image: libtiff cannot write this");
  }
  if (TIFFFlush(tiff.get()) != 1) throw std::runtime_error("test image: TIFFFlush failed");
  return memory.bytes;
}

}  // namespace millrace
