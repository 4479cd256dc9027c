// Passes over PNG files in memory, for peers/png.py to time beside other software: `millrace_bench_png FILE...` reads a
// word a line, "decode" or "resize", makes one pass over all files in its one thread, and prints the processor time
// that it took, in seconds. "resize" makes tensors as a lane does, 224x224, uint8, bilinear.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "daemon/backend/cpu/decoders/png/png_decoder.h"
#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/formats/probe.h"
#include "daemon/plan/draw_geometry.h"

namespace millrace {
namespace {

constexpr Size kOutput{224, 224};

[[noreturn]] void broken(const std::string& path, const std::string& why) {
  std::fprintf(stderr, "millrace_bench_png: %s: %s\n", path.c_str(), why.c_str());
  std::exit(1);
}

struct Picture {
  std::string path;
  EncodedImage image;
};

Picture read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file || text.empty()) broken(path, "cannot be read");
  Picture picture{path, {.bytes = EncodedBytes(text.size())}};
  std::memcpy(picture.image.bytes.writable().data(), text.data(), text.size());
  const Result<SourceInfo> info = probe_image(picture.image.bytes.view(), SampleLimits{}, UseOrientation::kYes);
  if (!info) broken(path, info.error().message);
  if (info->format != ImageFormat::kPng) broken(path, "no PNG file");
  picture.image.info = *info;
  return picture;
}

void decode_all(const std::vector<Picture>& pictures, PixelBuffer& buffer) {
  for (const Picture& picture : pictures) {
    const auto [width, height] = picture.image.info.stored;
    const kernels::Size size{static_cast<int>(width), static_cast<int>(height)};
    const auto pixels =
        decode_png({picture.image.bytes.view(), size, kernels::whole(size), Clock::time_point::max()}, buffer);
    if (!pixels) broken(picture.path, pixels.error().message);
  }
}

void make_all(std::vector<Picture>& pictures, const Recipe& recipe, std::vector<std::byte>& tensor,
              ImageWorkspace& workspace) {
  for (Picture& picture : pictures) {
    const auto geometry = draw_geometry(recipe, {}, picture.image.info, {}, SampleLimits{}.side);
    if (!geometry) broken(picture.path, geometry.error().message);
    SampleTask task{0, std::move(picture.image), *geometry, in_host_memory(tensor)};
    const SampleOutcome outcome = make_image(task, recipe, SampleLimits{}, workspace);
    picture.image = std::move(task.image);
    if (outcome.error) broken(picture.path, outcome.error->message);
  }
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void run(const std::vector<std::string>& paths) {
  std::vector<Picture> pictures;
  for (const std::string& path : paths) pictures.push_back(read(path));
  Recipe recipe;
  recipe.resize = ExactSize{kOutput};
  std::vector<std::byte> tensor(image_bytes(recipe, kOutput).count);
  ImageWorkspace workspace;
  PixelBuffer buffer;
  for (std::string word; std::cin >> word;) {
    const double begin = processor_seconds();
    if (word == "decode") decode_all(pictures, buffer);
    if (word == "resize") make_all(pictures, recipe, tensor, workspace);
    std::cout << processor_seconds() - begin << std::endl;
  }
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("millrace_bench_png FILE...: passes over PNG files, for tests/bench/peers/png.py\n", stderr);
    return 2;
  }
  millrace::run({argv + 1, argv + argc});
}
