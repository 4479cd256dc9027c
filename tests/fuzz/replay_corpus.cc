// Runs a fuzz target's function over its committed corpus without libFuzzer, so that every crash that was ever found
// stays found under every compiler and sanitizer. Each file is tried whole and cut short at a few places.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kCuts = 32;

// In a block of its own size, so that reading one byte too far is seen.
void try_input(const std::string& text, std::size_t size) {
  const auto block = std::make_unique<std::uint8_t[]>(size);
  std::copy_n(text.begin(), size, block.get());
  LLVMFuzzerTestOneInput(block.get(), size);
}

void try_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  try_input(text, text.size());
  for (std::size_t cut = 0; cut < kCuts && cut < text.size(); ++cut) try_input(text, text.size() * cut / kCuts);
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::fprintf(stderr, "%s\n", entry.path().c_str());  // the last line names the culprit of a crash
      try_file(entry.path());
      ++files;
    }
  }
  std::printf("%zu files tried\n", files);
  return files > 0 ? 0 : 1;
}
