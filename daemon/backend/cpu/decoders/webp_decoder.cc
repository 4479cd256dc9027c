#include "daemon/backend/cpu/decoders/webp_decoder.h"

#include <sys/mman.h>
#include <webp/decode.h>

#include <algorithm>
#include <cstring>

#include "daemon/backend/cpu/decoders/webp_frame.h"

namespace millrace {
namespace {

constexpr int kMargin = 8;  // columns and rows around a crop that smooth chroma upsampling may look at, and more

Error error_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return memory_error();
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return {Code::kUnsupported, "this kind of WebP cannot be decoded here"};
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return {Code::kInvalid, "truncated WebP: the image data ends before the image does"};
    default:
      return {Code::kInvalid, "damaged WebP: the image data makes no sense"};
  }
}

// What libwebp takes at most for a frame, besides the pixels that it writes: decoded ARGB, an alpha channel, transforms
// at a sixteenth of the size, rows to filter; and tables for each group of Huffman codes of a lossless image or alpha
// channel. There is one for 4x4 pixels at most, whose five codes take 20 bits at least (RFC 9649, 5.2.3 and 6.2), but
// up to 1,000 may be there in vain.
std::size_t libwebp_memory(const WebpFrame& frame) {
  constexpr std::size_t kBytesPerPixel = 6, kBytesPerColumn = 256, kBytesPerGroup = 21 << 10, kMostGroups = 1 << 16,
                        kOther = 1 << 20;
  const auto width = static_cast<std::size_t>(frame.place.width), height = static_cast<std::size_t>(frame.place.height);
  const std::size_t by_pixels = std::max<std::size_t>(1000, ((width + 3) / 4) * ((height + 3) / 4));
  const std::size_t groups = std::min({by_pixels, frame.data.size() * 8 / 20 + 1, kMostGroups});
  return width * (height * kBytesPerPixel + kBytesPerColumn) + groups * kBytesPerGroup + kOther;
}

// By mapping it, for a block that malloc() gives back would change how it treats the next ones (M_MMAP_THRESHOLD).
bool can_be_had(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, bytes);
  return true;
}

// libwebp says of some allocations that failed what it says of damage. So damage is believed only where the memory for
// decoding can be had.
Error verdict_of(VP8StatusCode status, const WebpFrame& frame) {
  return can_be_had(libwebp_memory(frame)) ? error_of(status) : memory_error();
}

// `box` and its margin, begun at even places, where chroma samples begin; and all rows below, for libwebp reads the
// image data down to the last row that it is asked for, and its verdict shall be the whole picture's.
kernels::Box widened(const kernels::Box& box, kernels::Size size) {
  const int left = std::max(0, box.left - kMargin) & ~1;
  const int top = std::max(0, box.top - kMargin) & ~1;
  return {left, top, std::min(size.width, box.left + box.width + kMargin) - left, size.height - top};
}

// `part` of the frame into `out`.
Result<void> decode_part(const WebpFrame& frame, const kernels::Box& part, const kernels::MutableU8View& out) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return Error{Code::kInternal, "libwebp was built for another interface version"};
  config.options.use_cropping = 1;
  config.options.crop_left = part.left;
  config.options.crop_top = part.top;
  config.options.crop_width = part.width;
  config.options.crop_height = part.height;
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {out.data, static_cast<int>(out.stride),
                          static_cast<std::size_t>(out.stride) * (static_cast<std::size_t>(out.height) - 1) +
                              static_cast<std::size_t>(out.width) * 3};
  const auto* const data = reinterpret_cast<const std::uint8_t*>(frame.data.data());
  const VP8StatusCode status = WebPDecode(data, frame.data.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) return verdict_of(status, frame);
  return {};
}

// A frame smaller than its canvas, on black.
Result<void> decode_on_canvas(const WebpFrame& frame, const kernels::MutableU8View& canvas) {
  std::memset(canvas.data, 0, static_cast<std::size_t>(canvas.stride) * static_cast<std::size_t>(canvas.height));
  const kernels::Box& place = frame.place;
  return decode_part(
      frame, {0, 0, place.width, place.height},
      {canvas.row(place.top) + std::ptrdiff_t{place.left} * 3, place.width, place.height, 3, canvas.stride});
}

// Whether the levels are those that somebody wrote. Under what is transparent encoders write what suits them.
Result<void> check_levels(const WebpFrame& frame) {
  constexpr int kLossless = 2;
  WebPBitstreamFeatures features;
  const auto* const data = reinterpret_cast<const std::uint8_t*>(frame.data.data());
  const VP8StatusCode status = WebPGetFeatures(data, frame.data.size(), &features);
  if (status != VP8_STATUS_OK) return error_of(status);
  if (features.format != kLossless)
    return Error{Code::kInvalid, "a lossy WebP, whose levels are not exact: make it anew, lossless or as PNG"};
  if (features.has_alpha != 0)
    return Error{Code::kInvalid, "a WebP with transparency, of which no indices are read: store it without"};
  return {};
}

// One channel of a picture whose three are equal, in their place.
Result<kernels::U8View> one_channel(const kernels::MutableU8View& pixels) {
  std::uint8_t* to = pixels.data;
  for (int y = 0; y < pixels.height; ++y) {
    const std::uint8_t* from = pixels.row(y);
    for (int x = 0; x < pixels.width; ++x, from += 3) {
      if (from[1] != from[0] || from[2] != from[0]) return coloured_error();
      *to++ = from[0];
    }
  }
  return kernels::U8View{pixels.data, pixels.width, pixels.height, 1, pixels.width};
}

}  // namespace

Result<kernels::U8View> decode_webp(const DecodeRequest& request, PixelBuffer& buffer) {
  MILLRACE_TRY(const WebpFrame frame, first_webp_frame(request.bytes_untrusted));
  if (frame.canvas != request.stored) return size_error(request.stored, frame.canvas);
  if (request.indices) MILLRACE_TRY_VOID(check_levels(frame));
  const kernels::Box &box = request.box, all = kernels::whole(frame.canvas);
  const kernels::Box part = request.indices || frame.place != all ? all : widened(box, frame.canvas);
  const std::ptrdiff_t stride = std::ptrdiff_t{part.width} * 3;
  std::uint8_t* const memory = buffer.reserve(static_cast<std::size_t>(stride) * static_cast<std::size_t>(part.height));
  if (memory == nullptr) return memory_error();
  const kernels::MutableU8View pixels{memory, part.width, part.height, 3, stride};
  MILLRACE_TRY_VOID(frame.place == all ? decode_part(frame, part, pixels) : decode_on_canvas(frame, pixels));
  if (request.deadline.is_over()) return deadline_error();
  kernels::U8View made = pixels;
  if (request.indices) {
    MILLRACE_TRY(made, one_channel(pixels));
  }
  return made.crop({box.left - part.left, box.top - part.top, box.width, box.height});
}

}  // namespace millrace
