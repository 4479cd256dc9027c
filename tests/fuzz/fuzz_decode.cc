// Bytes to pixels through every decoder with small limits, as a lane does it: whatever the bytes are, each decoder
// answers in time, inside its memory, and gives every box the pixels of the whole. The first byte chooses the box.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "daemon/backend/cpu/jpeg_decoder.h"
#include "daemon/backend/cpu/png_decoder.h"
#include "daemon/backend/cpu/webp_decoder.h"

namespace {

using namespace millrace;

constexpr int kMostPixels = 1 << 18;

using DecodeFunction = Result<kernels::U8View> (*)(const DecodeRequest&, PixelBuffer&);
using SizeFunction = Result<kernels::Size> (*)(ByteView);

kernels::Box box_of(std::uint8_t choice, kernels::Size size) {
  const int left = (choice & 3) * (size.width - 1) / 4, top = (choice >> 2 & 3) * (size.height - 1) / 4;
  return {left, top, std::max(1, (size.width - left) * (1 + (choice >> 4 & 3)) / 4),
          std::max(1, (size.height - top) * (1 + (choice >> 6)) / 4)};
}

bool same_pixels(const kernels::U8View& a, const kernels::U8View& b) {
  if (a.channels != b.channels) return false;
  for (int y = 0; y < a.height; ++y) {
    if (std::memcmp(a.row(y), b.row(y), static_cast<std::size_t>(a.width) * a.channels) != 0) return false;
  }
  return true;
}

void try_decoder(SizeFunction find_size, DecodeFunction decode, ByteView bytes, std::uint8_t choice) {
  const Result<kernels::Size> size = find_size(bytes);
  if (!size || size->width < 1 || size->height < 1 || std::int64_t{size->width} * size->height > kMostPixels) return;
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  const kernels::Box box = box_of(choice, *size);
  PixelBuffer whole_buffer, part_buffer;
  const Result<kernels::U8View> whole =
      decode({bytes, *size, {0, 0, size->width, size->height}, deadline}, whole_buffer);
  const Result<kernels::U8View> part = decode({bytes, *size, box, deadline}, part_buffer);
  if (whole && part && !same_pixels(whole->crop(box), *part)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  try_decoder(jpeg_size, decode_jpeg, bytes, data[0]);
  try_decoder(png_size, decode_png, bytes, data[0]);
  try_decoder(webp_size, decode_webp, bytes, data[0]);
  return 0;
}
