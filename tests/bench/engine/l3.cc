#include "tests/bench/engine/l3.h"

#include <algorithm>

#include "daemon/backend/cpu/decoders/l3_decoder.h"
#include "daemon/backend/cpu/decoders/png/png_decoder.h"
#include "kernels/l3/encoding/encoder.h"
#include "tests/bench/engine/engine_rig.h"

namespace millrace::bench {
namespace {

constexpr std::size_t kMostL3Photos = 24;

struct L3Photo {
  Pixels pixels;
  kernels::Size size;
  std::vector<std::byte> png;
  EncodedBytes l3;

  DecodeRequest request(ByteView file, const kernels::Box& box, kernels::Target target) const {
    return {.bytes_untrusted = file,
            .stored = size,
            .box = box,
            .deadline = Clock::now() + std::chrono::hours(1),
            .target = target};
  }
  kernels::l3::SampleView samples() const { return {pixels.data.data(), size, 3, 1, std::ptrdiff_t{size.width} * 3}; }
};

std::vector<std::uint8_t> l3_of(const L3Photo& photo, kernels::l3::Effort effort) {
  std::vector<std::uint8_t> file;
  if (!kernels::l3::encode({.samples = photo.samples()}, effort, kernels::best_target(), file).empty())
    broken("a photograph does not fit into L3");
  return file;
}

// 8 bits and three channels, as PNG by libspng's encoder and as L3.
std::vector<L3Photo> as_l3(const std::vector<Photo>& photos) {
  std::vector<L3Photo> all;
  for (std::size_t i = 0; i < std::min(photos.size(), kMostL3Photos); ++i) {
    L3Photo photo{.pixels = pixels_of(photos[i]), .size = {}, .png = {}, .l3 = {}};
    photo.size = {static_cast<int>(photo.pixels.width), static_cast<int>(photo.pixels.height)};
    photo.png = make_png({.pixels = photo.pixels});
    const std::vector<std::uint8_t> file = l3_of(photo, kernels::l3::Effort::kBest);
    photo.l3 = EncodedBytes(file.size());
    std::transform(file.begin(), file.end(), photo.l3.writable().begin(),
                   [](std::uint8_t byte) { return std::byte{byte}; });
    all.push_back(std::move(photo));
  }
  return all;
}

// A quarter of each side, in the middle.
kernels::Box quarter(kernels::Size size) {
  return {size.width * 3 / 8, size.height * 3 / 8, std::max(size.width / 4, 1), std::max(size.height / 4, 1)};
}

}  // namespace

void run_l3(const BenchOptions& options, const Report& report) {
  std::size_t files = 0;
  const std::vector<L3Photo> photos = as_l3(load_photos(options.data, files));
  PixelBuffer buffer;
  const auto whole_l3 = [&](kernels::Target target) {
    return [&, target](std::uint32_t) {
      for (const L3Photo& photo : photos) {
        if (!decode_l3(photo.request(photo.l3.view(), kernels::whole(photo.size), target), buffer))
          broken("an L3 was not decoded");
      }
    };
  };
  const auto whole_png = [&](std::uint32_t) {
    for (const L3Photo& photo : photos) {
      if (!decode_png_by_libspng(photo.request(photo.png, kernels::whole(photo.size), kernels::best_target()), buffer))
        broken("a PNG was not decoded");
    }
  };
  const auto crop_l3 = [&](std::uint32_t) {
    for (const L3Photo& photo : photos) {
      if (!decode_l3(photo.request(photo.l3.view(), quarter(photo.size), kernels::best_target()), buffer))
        broken("an L3 was not decoded");
    }
  };
  const auto encode_l3 = [&](kernels::l3::Effort effort) {
    return [&, effort](std::uint32_t) {
      for (const L3Photo& photo : photos) static_cast<void>(l3_of(photo, effort));
    };
  };
  const auto encode_png = [&](std::uint32_t) {
    for (const L3Photo& photo : photos) static_cast<void>(make_png({.pixels = photo.pixels}));
  };
  const std::string libspng = "PNG by zlib and libspng";
  run({"l3.decode", libspng, "photographs as L3, whole, to RGB", whole_l3(kernels::best_target()), whole_png},
      photos.size(), options, report);
  if (kernels::is_available(kernels::Target::kAvx2)) {
    run({"l3.decode.avx2", libspng, "the same with AVX2", whole_l3(kernels::Target::kAvx2), whole_png}, photos.size(),
        options, report);
  }
  run({"l3.decode.scalar", libspng, "the same without vectors", whole_l3(kernels::Target::kScalar), whole_png},
      photos.size(), options, report);
  run({"l3.crop", "the whole picture", "the middle, a quarter of each side", crop_l3, whole_l3(kernels::best_target())},
      photos.size(), options, report);
  run({"l3.encode.fast", "PNG by zlib and libspng", "photographs to L3, one transform",
       encode_l3(kernels::l3::Effort::kFast), encode_png},
      photos.size(), options, report);
  run({"l3.encode.best", "PNG by zlib and libspng", "photographs to L3, of four transforms the best",
       encode_l3(kernels::l3::Effort::kBest), encode_png},
      photos.size(), options, report);
}

}  // namespace millrace::bench
