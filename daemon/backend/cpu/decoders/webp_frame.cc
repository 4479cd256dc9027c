#include "daemon/backend/cpu/decoders/webp_frame.h"

#include <webp/decode.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {
namespace {

constexpr std::size_t kRiffHeader = 12, kChunkHeader = 8, kExtended = 10, kAnimation = 6, kFrameHeader = 16;
constexpr std::uint32_t kMostPayload = 0xFFFFFFFFU - kChunkHeader - 1;
constexpr std::uint64_t kTooManyPixels = std::uint64_t{1} << 32;
constexpr std::uint8_t kAnimationFlag = 0x02, kAlphaFlag = 0x10, kKnownFlags = 0x3E;  // RFC 9649, 2.7.1

Error damaged(const char* what) {
  return {Code::kInvalid, std::string("damaged or truncated WebP: ") + what};
}
Error incomplete() {
  return damaged("its chunks are incomplete");
}

std::uint32_t little_endian(ByteView bytes, std::size_t at, int count) {
  std::uint32_t value = 0;
  for (int i = count - 1; i >= 0; --i)
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + static_cast<std::size_t>(i)]);
  return value;
}

struct Chunk {
  std::string_view type;
  std::size_t begin;  // of its header
  std::size_t end;    // of its payload, padded to even

  std::size_t payload() const { return begin + kChunkHeader; }
  std::size_t size() const { return end - payload(); }
};

// An image, or a part of one: RFC 9649, 2.6 and 2.7.2. Sizes in pixels are 0 until its bitstream was seen.
struct Frame {
  std::optional<Chunk> alpha;
  std::optional<Chunk> image;
  std::uint32_t left = 0, top = 0, width = 0, height = 0;
};

class Walk {
 public:
  explicit Walk(ByteView riff) : bytes_(riff) {}

  Result<WebpFrame> run() {
    MILLRACE_TRY(const Chunk first, next());
    if (first.type == "VP8X") {
      MILLRACE_TRY_VOID(walk_extended(first));
    } else if (first.type == "VP8 " || first.type == "VP8L") {
      at_ = first.begin;
      MILLRACE_TRY_VOID(read_only_image());
      if (!frame_->image) return incomplete();
      canvas_width_ = frame_->width;
      canvas_height_ = frame_->height;
    } else {
      return damaged("its first chunk is none of VP8, VP8L and VP8X");
    }
    if (!frame_) return Error{Code::kInvalid, "damaged WebP: it has no image"};
    return found();
  }

 private:
  Result<Chunk> next() const {
    if (bytes_.size() - at_ < kChunkHeader) return incomplete();
    const std::string_view type(reinterpret_cast<const char*>(bytes_.data() + at_), 4);
    const std::uint32_t length = little_endian(bytes_, at_ + 4, 4);
    const std::uint64_t padded = std::uint64_t{length} + (length & 1U);
    if (length > kMostPayload || padded > bytes_.size() - at_ - kChunkHeader) return incomplete();
    return Chunk{type, at_, at_ + kChunkHeader + static_cast<std::size_t>(padded)};
  }

  Result<void> walk_extended(const Chunk& header) {
    if (header.size() < kExtended) return incomplete();
    flags_ = std::to_integer<std::uint8_t>(bytes_[header.payload()]);
    canvas_width_ = 1 + little_endian(bytes_, header.payload() + 4, 3);
    canvas_height_ = 1 + little_endian(bytes_, header.payload() + 7, 3);
    if (std::uint64_t{canvas_width_} * canvas_height_ >= kTooManyPixels) return damaged("its canvas is too large");
    if ((flags_ & ~kKnownFlags) != 0) return damaged("its flags make no sense");
    at_ = header.end;
    do {
      MILLRACE_TRY(const Chunk chunk, next());
      MILLRACE_TRY_VOID(take(chunk));
    } while (at_ != bytes_.size());
    return {};
  }

  Result<void> take(const Chunk& chunk) {
    if (chunk.type == "VP8X") return damaged("it has two VP8X chunks");
    if (chunk.type == "ALPH" || chunk.type == "VP8 " || chunk.type == "VP8L") {
      if (has_animation_ || is_animated()) return damaged("an image of an animation stands outside its frames");
      MILLRACE_TRY_VOID(read_only_image());
      return check(*frame_);
    }
    if (chunk.type == "ANMF") return read_animation_frame(chunk);
    if (chunk.type == "ANIM") {
      if (chunk.size() < kAnimation) return incomplete();
      has_animation_ = true;
    }
    at_ = chunk.end;
    return {};
  }

  bool is_animated() const { return (flags_ & kAnimationFlag) != 0; }

  // RFC 9649, 2.5 and 2.6, and the image of an extended file without animation.
  Result<void> read_only_image() {
    if (frame_) return damaged("it has two images");
    frame_.emplace();
    MILLRACE_TRY_VOID(read_image_chunks(*frame_));
    if ((flags_ & kAlphaFlag) == 0) frame_->alpha.reset();
    return {};
  }

  // RFC 9649, 2.7.1.1. Frames behind the first one are looked at like it, and forgotten.
  Result<void> read_animation_frame(const Chunk& chunk) {
    if (!has_animation_) return damaged("its frames come before the ANIM chunk");
    if (chunk.size() < kFrameHeader) return incomplete();
    const auto number = [&](std::size_t at) { return little_endian(bytes_, chunk.payload() + at, 3); };
    Frame frame{.left = 2 * number(0), .top = 2 * number(3), .width = 1 + number(6), .height = 1 + number(9)};
    if (std::uint64_t{frame.width} * frame.height >= kTooManyPixels) return damaged("a frame is too large");
    at_ = chunk.payload() + kFrameHeader;
    MILLRACE_TRY_VOID(read_image_chunks(frame));
    if (at_ > chunk.end) return incomplete();
    if (!is_animated() || (!frame.alpha && !frame.image)) return {};
    MILLRACE_TRY_VOID(check(frame));
    if (!frame_) frame_ = frame;
    return {};
  }

  // At most one alpha and one image chunk; the first other one ends it. Where the file ends, so does this.
  Result<void> read_image_chunks(Frame& frame) {
    do {
      MILLRACE_TRY(const Chunk chunk, next());
      if (chunk.type == "ALPH" && !frame.alpha) {
        frame.alpha = chunk;
      } else if (chunk.type == "VP8 " || chunk.type == "VP8L") {
        if (chunk.type == "VP8L" && frame.alpha) return damaged("a lossless image has another alpha channel");
        if (frame.image) return {};
        MILLRACE_TRY_VOID(read_image_header(chunk, frame));
      } else {
        return {};
      }
      at_ = chunk.end;
    } while (at_ != bytes_.size());
    return {};
  }

  Result<void> read_image_header(const Chunk& chunk, Frame& frame) const {
    WebPBitstreamFeatures features;
    const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes_.data() + chunk.begin);
    if (WebPGetFeatures(data, chunk.end - chunk.begin, &features) != VP8_STATUS_OK)
      return damaged("an image's header makes no sense");
    frame.image = chunk;
    frame.width = static_cast<std::uint32_t>(features.width);
    frame.height = static_cast<std::uint32_t>(features.height);
    return {};
  }

  Result<void> check(const Frame& frame) const {
    if (!frame.image) return incomplete();
    if (frame.alpha && frame.alpha->begin > frame.image->begin) return damaged("an alpha channel comes too late");
    const std::uint64_t right = std::uint64_t{frame.left} + frame.width,
                        bottom = std::uint64_t{frame.top} + frame.height;
    const bool fits = is_animated() ? right <= canvas_width_ && bottom <= canvas_height_
                                    : right == canvas_width_ && bottom == canvas_height_;
    if (!fits) return damaged("an image does not fit on the canvas");
    return {};
  }

  WebpFrame found() const {
    const std::size_t begin = frame_->alpha ? frame_->alpha->begin : frame_->image->begin;
    const auto whole = [](std::uint32_t number) { return static_cast<int>(number); };
    return {{whole(canvas_width_), whole(canvas_height_)},
            {whole(frame_->left), whole(frame_->top), whole(frame_->width), whole(frame_->height)},
            bytes_.subspan(begin, frame_->image->end - begin)};
  }

  ByteView bytes_;
  std::size_t at_ = kRiffHeader;
  std::uint8_t flags_ = 0;
  std::uint32_t canvas_width_ = 0, canvas_height_ = 0;
  bool has_animation_ = false;
  std::optional<Frame> frame_;
};

}  // namespace

Result<WebpFrame> first_webp_frame(ByteView bytes_untrusted) {
  if (bytes_untrusted.size() < kRiffHeader + kChunkHeader) return incomplete();
  if (std::memcmp(bytes_untrusted.data(), "RIFF", 4) != 0 || std::memcmp(bytes_untrusted.data() + 8, "WEBP", 4) != 0)
    return Error{Code::kInvalid, "not a WebP file: its signature is wrong"};
  const std::uint32_t length = little_endian(bytes_untrusted, 4, 4);
  if (length < kChunkHeader || length > kMostPayload) return incomplete();
  const std::size_t end = std::size_t{length} + kChunkHeader;
  if (bytes_untrusted.size() < end || end < kRiffHeader + kChunkHeader) return incomplete();
  return Walk(bytes_untrusted.first(end)).run();
}

}  // namespace millrace
