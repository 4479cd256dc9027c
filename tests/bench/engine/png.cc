#include "tests/bench/engine/png.h"

#include <algorithm>

#include "daemon/backend/cpu/decoders/png/png_decoder.h"
#include "daemon/backend/cpu/decoders/png/png_quick_decoder.h"
#include "tests/bench/engine/engine_rig.h"

namespace millrace::bench {
namespace {

constexpr std::size_t kMostPhotos = 48;

struct PngPhoto {
  std::vector<std::byte> file;
  kernels::Size size;

  DecodeRequest request(kernels::Target target = kernels::best_target()) const {
    return {.bytes_untrusted = file,
            .stored = size,
            .box = kernels::whole(size),
            .deadline = Clock::now() + std::chrono::hours(1),
            .target = target};
  }
};

std::vector<PngPhoto> as_png(const std::vector<Photo>& photos) {
  std::vector<PngPhoto> files;
  for (std::size_t i = 0; i < std::min(photos.size(), kMostPhotos); ++i) {
    const Pixels pixels = pixels_of(photos[i]);
    const kernels::Size size{static_cast<int>(pixels.width), static_cast<int>(pixels.height)};
    files.push_back({make_png({.pixels = pixels}), size});
  }
  return files;
}

}  // namespace

void run_png(const BenchOptions& options, const Report& report) {
  std::size_t files = 0;
  const std::vector<PngPhoto> photos = as_png(load_photos(options.data, files));
  PixelBuffer buffer;
  const auto by_libspng = [&](std::uint32_t) {
    for (const PngPhoto& photo : photos) {
      if (!decode_png_by_libspng(photo.request(), buffer)) broken("a photograph was not decoded");
    }
  };
  const auto by_us = [&](kernels::Target target) {
    return [&, target](std::uint32_t) {
      for (const PngPhoto& photo : photos) {
        const auto decoded = decode_png_quickly(photo.request(target), *PngChunks::open(photo.file), buffer);
        if (!decoded || !*decoded) broken("a photograph is not for our decoder");
      }
    };
  };
  run({"png.decode", "zlib and libspng", "photographs as PNG, whole, to RGB", by_us(kernels::best_target()),
       by_libspng},
      photos.size(), options, report);
  if (kernels::is_available(kernels::Target::kAvx2)) {
    run({"png.decode.avx2", "zlib and libspng", "the same with AVX2", by_us(kernels::Target::kAvx2), by_libspng},
        photos.size(), options, report);
  }
}

}  // namespace millrace::bench
