// A decoded AVIF picture's planes to RGB, as Pillow 13 makes them of it: libyuv's conversion, through libavif. Pillow's
// later libavif takes samples of more than 8 bits down to 8 before, where libyuv has no conversion for those that it is
// asked for; so does this. Thread-bound(the thread that decodes).
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/backend/cpu/decoders/decode.h"
#include "daemon/backend/cpu/decoders/heif/avif_library.h"

namespace millrace {

class AvifPixels {
 public:
  // Both outlive this.
  AvifPixels(const AvifLibrary& avif, const avifImage& image, bool has_alpha)
      : avif_(avif), image_(image), has_alpha_(has_alpha) {}

  int channels() const { return image_.yuvFormat == AVIF_PIXEL_FORMAT_YUV400 ? 1 : 3; }

  // The box of the request into `out`. Errors: kDeadline, kExhausted, kInternal: what libavif says.
  Result<void> convert(const DecodeRequest& request, const kernels::MutableU8View& out);

 private:
  static constexpr int kRows = 64;   // at once
  static constexpr int kMargin = 2;  // rows beside them that upsampling of chroma may look at

  bool is_made_shallow() const;
  Result<void> convert_rows(int begin, int end);
  Result<void> make_shallow(avifImage& rows);

  const AvifLibrary& avif_;
  const avifImage& image_;
  const bool has_alpha_;
  std::unique_ptr<std::uint8_t[]> rgb_;      // rows of 3 or 4 bytes a pixel
  std::unique_ptr<std::uint8_t[]> shallow_;  // planes of 8 bits
};

}  // namespace millrace
