// The formats of this daemon, a row each. Code that asks about formats asks here: the probe, the expected cost,
// Devices.List, which files of a folder are pictures. README.md says how to add one. Immutable.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "daemon/formats/avif.h"
#include "daemon/formats/bmp.h"
#include "daemon/formats/format.h"
#include "daemon/formats/gif.h"
#include "daemon/formats/heic.h"
#include "daemon/formats/jpeg.h"
#include "daemon/formats/l3.h"
#include "daemon/formats/packed.h"
#include "daemon/formats/png.h"
#include "daemon/formats/pnm.h"
#include "daemon/formats/tiff.h"
#include "daemon/formats/webp.h"

namespace millrace {

// In the order of ImageFormat.
inline constexpr std::array kFormats{kJpegFormat, kPngFormat,  kWebpFormat, kPackedFormat, kPnmFormat, kBmpFormat,
                                     kGifFormat,  kTiffFormat, kAvifFormat, kHeicFormat,   kL3Format};
static_assert(kFormats.size() == kImageFormats);
static_assert([] {
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].format != static_cast<ImageFormat>(i)) return false;
  }
  return true;
}());

constexpr const Format& format_of(ImageFormat format) {
  return kFormats[static_cast<std::size_t>(format)];
}

// What names of pictures end with, of all rows.
inline constexpr auto kPictureExtensions = [] {
  constexpr std::size_t kCount = [] {
    std::size_t count = 0;
    for (const Format& format : kFormats) count += format.extensions.size();
    return count;
  }();
  std::array<std::string_view, kCount> all;
  auto end = all.begin();
  for (const Format& format : kFormats) end = std::copy(format.extensions.begin(), format.extensions.end(), end);
  return all;
}();

// The same of common formats that have no row: somebody has to convert these.
inline constexpr std::array<std::string_view, 3> kOtherPictureExtensions{"jp2", "jxl", "tga"};
static_assert(std::find_first_of(kOtherPictureExtensions.begin(), kOtherPictureExtensions.end(),
                                 kPictureExtensions.begin(),
                                 kPictureExtensions.end()) == kOtherPictureExtensions.end());

}  // namespace millrace
