#include "daemon/backend/cpu/webp_decoder.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace millrace {
namespace {

constexpr int kMargin = 8;  // columns and rows around a crop that smooth chroma upsampling may look at, and more

using Demuxer = std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)>;

// The first frame of a file and the canvas that it lies on.
struct FirstFrame {
  Demuxer demuxer;  // what `data` belongs to
  kernels::Size canvas;
  kernels::Box place;
  WebPData data;
};

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

Result<FirstFrame> first_frame(ByteView bytes_untrusted) {
  const WebPData file{reinterpret_cast<const std::uint8_t*>(bytes_untrusted.data()), bytes_untrusted.size()};
  Demuxer demuxer(WebPDemux(&file), WebPDemuxDelete);
  if (!demuxer) return Error{Code::kInvalid, "damaged or truncated WebP: its chunks are incomplete"};
  WebPIterator frame{};
  if (WebPDemuxGetFrame(demuxer.get(), 1, &frame) == 0) return Error{Code::kInvalid, "damaged WebP: it has no image"};
  const kernels::Box place{frame.x_offset, frame.y_offset, frame.width, frame.height};
  const WebPData data = frame.fragment;
  WebPDemuxReleaseIterator(&frame);  // the fragment stays: it points into the file
  const kernels::Size canvas{static_cast<int>(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH)),
                             static_cast<int>(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT))};
  return FirstFrame{std::move(demuxer), canvas, place, data};
}

// `box` and its margin, begun at even places, where chroma samples begin.
kernels::Box widened(const kernels::Box& box, kernels::Size size) {
  const int left = std::max(0, box.left - kMargin) & ~1;
  const int top = std::max(0, box.top - kMargin) & ~1;
  return {left, top, std::min(size.width, box.left + box.width + kMargin) - left,
          std::min(size.height, box.top + box.height + kMargin) - top};
}

// `part` of the frame into `out`.
Result<void> decode_part(const WebPData& frame, const kernels::Box& part, const kernels::MutableU8View& out) {
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
  const VP8StatusCode status = WebPDecode(frame.bytes, frame.size, &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) return error_of(status);
  return {};
}

// A frame smaller than its canvas, on black.
Result<kernels::U8View> decode_on_canvas(const FirstFrame& frame, const kernels::Box& box, PixelBuffer& buffer) {
  const std::ptrdiff_t stride = std::ptrdiff_t{frame.canvas.width} * 3;
  const std::size_t bytes = static_cast<std::size_t>(stride) * static_cast<std::size_t>(frame.canvas.height);
  std::uint8_t* const memory = buffer.reserve(bytes);
  if (memory == nullptr) return memory_error();
  std::memset(memory, 0, bytes);
  const kernels::Box& place = frame.place;
  MILLRACE_TRY_VOID(decode_part(
      frame.data, {0, 0, place.width, place.height},
      {memory + place.top * stride + std::ptrdiff_t{place.left} * 3, place.width, place.height, 3, stride}));
  return kernels::U8View{memory, frame.canvas.width, frame.canvas.height, 3, stride}.crop(box);
}

}  // namespace

Result<kernels::U8View> decode_webp(const DecodeRequest& request, PixelBuffer& buffer) {
  MILLRACE_TRY(const FirstFrame frame, first_frame(request.bytes_untrusted));
  if (frame.canvas != request.stored) return size_error(request.stored, frame.canvas);
  if (frame.place != kernels::Box{0, 0, frame.canvas.width, frame.canvas.height})
    return decode_on_canvas(frame, request.box, buffer);
  const kernels::Box& box = request.box;
  const kernels::Box part = widened(box, frame.canvas);
  const std::ptrdiff_t stride = std::ptrdiff_t{part.width} * 3;
  std::uint8_t* const memory = buffer.reserve(static_cast<std::size_t>(stride) * static_cast<std::size_t>(part.height));
  if (memory == nullptr) return memory_error();
  const kernels::MutableU8View pixels{memory, part.width, part.height, 3, stride};
  MILLRACE_TRY_VOID(decode_part(frame.data, part, pixels));
  if (Clock::now() > request.deadline) return deadline_error();
  return kernels::U8View(pixels).crop({box.left - part.left, box.top - part.top, box.width, box.height});
}

Result<kernels::Size> webp_size(ByteView bytes_untrusted) {
  MILLRACE_TRY(const FirstFrame frame, first_frame(bytes_untrusted));
  return frame.canvas;
}

}  // namespace millrace
