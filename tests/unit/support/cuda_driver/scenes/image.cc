// Modules' images: a text, or a fat binary of the entries that the arguments name.
#include <cstdio>
#include <string>

#include "tests/unit/support/cuda_driver/scenes/scenes.h"

namespace millrace::cuda_scenes {
namespace {

constexpr std::size_t kCode = 24;

class FatBinary {
 public:
  // elf:90, ptx:100:9.0; `lies`: says that it is longer.
  void add(const std::string& entry) {
    unsigned architecture = 0, major = 1, minor = 8;
    const bool is_ptx = std::sscanf(entry.c_str(), "ptx:%u:%u.%u", &architecture, &major, &minor) == 3;
    if (!is_ptx) std::sscanf(entry.c_str(), "elf:%u", &architecture);
    put(is_ptx ? 1 : 2, 2);
    put(0x101, 2);
    put(64, 4);
    put(entry == "lies" ? 1 << 20 : kCode, 8);
    put(0, 8);  // it is not compressed and has no options
    put(minor, 2);
    put(major, 2);
    put(architecture, 4);
    put(0, 32 + kCode);
  }
  std::string bytes() const {
    FatBinary all;
    all.put(0xBA55ED50, 4);
    all.put(1, 2);
    all.put(16, 2);
    all.put(entries_.size(), 8);
    return all.entries_ + entries_;
  }

 private:
  void put(std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) entries_ += static_cast<char>(i < 8 ? value >> (8 * i) & 0xFF : 0);
  }
  std::string entries_;
};

int image(Arguments arguments) {
  const Gpu gpu;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  std::string bytes(arguments[0]);
  if (bytes == "fatbin") {
    FatBinary fat_binary;
    for (const std::string_view entry : arguments.subspan(1)) fat_binary.add(std::string(entry));
    bytes = fat_binary.bytes();
  }
  const CUresult loaded = gpu.cu.cuModuleLoadData(&module, bytes.data());
  say("load", loaded);
  if (loaded == CUDA_SUCCESS) say("function", gpu.cu.cuModuleGetFunction(&function, module, "unknown"));
  return 0;
}

constexpr Scene kImageScenes[] = {{"image", image}};

}  // namespace

std::span<const Scene> image_scenes() {
  return kImageScenes;
}

}  // namespace millrace::cuda_scenes
