// The formats that the CPU decodes, and what decodes each to pixels. A format of daemon/formats without a row here is
// another backend's, and not told in the CPU's BackendInfo. Immutable.
//
// Ways around it are making/image_maker.cc's affair: the lane's own decoder goes before libjpeg-turbo (jpeg_choice.h) and
// decodes packed coefficients, a JPEG picture need not come to be at all (making/fused_jpeg.h), PNM is nothing but
// copied, and L3 is decoded by the lane.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "daemon/backend/cpu/decoders/bmp_decoder.h"
#include "daemon/backend/cpu/decoders/gif_decoder.h"
#include "daemon/backend/cpu/decoders/heif/avif_decoder.h"
#include "daemon/backend/cpu/decoders/heif/heic_decoder.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "daemon/backend/cpu/decoders/jpeg/packed_decoder.h"
#include "daemon/backend/cpu/decoders/l3_decoder.h"
#include "daemon/backend/cpu/decoders/png/png_decoder.h"
#include "daemon/backend/cpu/decoders/pnm_decoder.h"
#include "daemon/backend/cpu/decoders/tiff/tiff_decoder.h"
#include "daemon/backend/cpu/decoders/webp_decoder.h"
#include "daemon/model/bytes/encoded_image.h"

namespace millrace {

struct FormatDecoder {
  ImageFormat format;
  Result<kernels::U8View> (*decode)(const DecodeRequest& request, PixelBuffer& buffer);
  // Whether the library is there that it needs, which is looked for once. Null: it is part of the program.
  Result<void> (*can_decode)() = nullptr;
  bool has_indices = false;  // whether it heeds DecodeRequest::indices
};

inline constexpr std::array kDecoders{
    FormatDecoder{ImageFormat::kJpeg, decode_jpeg},
    FormatDecoder{ImageFormat::kPng, decode_png, nullptr, true},
    FormatDecoder{ImageFormat::kWebp, decode_webp, nullptr, true},
    FormatDecoder{ImageFormat::kPacked, decode_packed},
    FormatDecoder{ImageFormat::kPnm, decode_pnm},
    FormatDecoder{ImageFormat::kBmp, decode_bmp, nullptr, true},
    FormatDecoder{ImageFormat::kGif, decode_gif, nullptr, true},
    FormatDecoder{ImageFormat::kTiff, decode_tiff, nullptr, true},
    FormatDecoder{ImageFormat::kAvif, decode_avif, can_decode_avif},
    FormatDecoder{ImageFormat::kHeic, decode_heic, can_decode_heic},
    FormatDecoder{ImageFormat::kL3, decode_l3, nullptr, true},
};

// nullptr: none.
constexpr const FormatDecoder* decoder_of(ImageFormat format) {
  const auto* const row =
      std::find_if(kDecoders.begin(), kDecoders.end(), [&](const FormatDecoder& d) { return d.format == format; });
  return row == kDecoders.end() ? nullptr : row;
}

// kUnsupported: none, or its library is not installed.
inline Result<void> check_decoder(ImageFormat format) {
  const FormatDecoder* const row = decoder_of(format);
  if (row != nullptr) return row->can_decode == nullptr ? Result<void>() : row->can_decode();
  return Error{Code::kUnsupported, "it does not decode this image format"};
}

constexpr bool has_indices(ImageFormat format) {
  const FormatDecoder* const row = decoder_of(format);
  return row != nullptr && row->has_indices;
}

// Those whose libraries are there.
inline std::vector<ImageFormat> decoded_formats() {
  std::vector<ImageFormat> formats;
  for (const FormatDecoder& row : kDecoders) {
    if (row.can_decode == nullptr || row.can_decode()) formats.push_back(row.format);
  }
  return formats;
}

}  // namespace millrace
