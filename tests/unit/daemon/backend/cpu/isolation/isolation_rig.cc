#include "tests/unit/daemon/backend/cpu/isolation/isolation_rig.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/process.h"

namespace millrace {
namespace {

struct Kind {
  const char* name;
  ImageFormat format;
  std::uint32_t channels;
  File (*make)(Pixels pixels);
};
constexpr auto kJpeg = ImageFormat::kJpeg, kPng = ImageFormat::kPng, kWebp = ImageFormat::kWebp,
               kAvif = ImageFormat::kAvif;
constexpr Kind kKinds[] = {
    {"png", kPng, 3, [](Pixels pixels) { return make_png({.pixels = std::move(pixels)}); }},
    {"png grey 16", kPng, 1, [](Pixels pixels) { return make_png({.pixels = std::move(pixels), .bit_depth = 16}); }},
    {"png rgba interlaced", kPng, 4,
     [](Pixels pixels) { return make_png({.pixels = std::move(pixels), .interlaced = true}); }},
    {"webp", kWebp, 3, [](Pixels pixels) { return make_webp({.pixels = std::move(pixels)}); }},
    {"webp lossless", kWebp, 4,
     [](Pixels pixels) { return make_webp({.pixels = std::move(pixels), .lossless = true}); }},
    {"jpeg progressive", kJpeg, 3,
     [](Pixels pixels) { return make_jpeg({.pixels = std::move(pixels), .progressive = true}); }},
    {"jpeg grey progressive", kJpeg, 1,
     [](Pixels pixels) { return make_jpeg({.pixels = std::move(pixels), .progressive = true}); }},
    {"jpeg cmyk", kJpeg, 4, [](Pixels pixels) { return make_jpeg({.pixels = std::move(pixels)}); }},
    {"jpeg arithmetic", kJpeg, 3,
     [](Pixels pixels) { return make_jpeg({.pixels = std::move(pixels), .arithmetic = true}); }},
    {"avif", kAvif, 3, [](Pixels pixels) { return make_avif({.pixels = std::move(pixels)}); }},
    {"avif grey alpha 10", kAvif, 2,
     [](Pixels pixels) { return make_avif({.pixels = std::move(pixels), .bit_depth = 10}); }},
};

}  // namespace

const DecoderProgram& decoder_under_test() {
  static const DecoderProgram program = decoder_program_at(bin_folder() + "/millrace-decoder");
  return program;
}

DecoderProgram decoder_program_at(const std::string& path) {
  Result<DecoderProgram> found = decoder_program(path, Limits{});
  if (!found) FAIL(found.error().message);
  return *std::move(found);
}

LibraryFile png_file(std::uint32_t width, std::uint32_t height, std::uint32_t seed) {
  return {"png",
          ImageFormat::kPng,
          {static_cast<int>(width), static_cast<int>(height)},
          make_png({.pixels = make_pixels(width, height, 3, seed)})};
}

LibraryFile library_file(const std::string& name, std::uint32_t width, std::uint32_t height) {
  const kernels::Size size{static_cast<int>(width), static_cast<int>(height)};
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return {name, kind.format, size, kind.make(make_pixels(width, height, kind.channels, 5))};
  }
  FAIL("no such kind of file: " << name);
  return {};
}

std::vector<LibraryFile> library_files(std::uint32_t width, std::uint32_t height) {
  std::vector<LibraryFile> files;
  for (const Kind& kind : kKinds) {
    if (kind.format != kAvif || can_make_avif()) files.push_back(library_file(kind.name, width, height));
  }
  return files;
}

DecodeRequest whole_of(const LibraryFile& file, std::uint32_t user, Clock::time_point deadline) {
  return {.bytes_untrusted = file.bytes,
          .stored = file.size,
          .box = kernels::whole(file.size),
          .deadline = deadline,
          .origin = {user, Origin::Audience::kUser}};
}

bool same(const kernels::U8View& a, const kernels::U8View& b) {
  if (a.size() != b.size() || a.channels != b.channels) return false;
  for (int y = 0; y < a.height; ++y) {
    if (std::memcmp(a.row(y), b.row(y), static_cast<std::size_t>(a.width) * static_cast<std::size_t>(a.channels)) != 0)
      return false;
  }
  return true;
}

std::vector<pid_t> processes() {
  std::vector<pid_t> all = decoder_processes(getpid());
  std::sort(all.begin(), all.end());
  return all;
}

pid_t the_process() {
  const std::vector<pid_t> all = processes();
  REQUIRE(all.size() == 1);
  return all[0];
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace millrace
