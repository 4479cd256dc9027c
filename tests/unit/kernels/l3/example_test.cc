// The worked example of kernels/l3/README.md, byte by byte.
#include <catch2/catch.hpp>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>

#include "kernels/l3/decoder.h"
#include "kernels/l3/encoding/encoder.h"
#include "tests/unit/kernels/l3/l3_rig.h"

namespace millrace::kernels::l3 {
namespace {

// The rows of the example's table: where bytes are, and the bytes. Each row begins where the one before it ends.
FileVector example_of_the_readme() {
  std::ifstream readme(MILLRACE_SOURCE_DIR "/kernels/l3/README.md");
  FileVector file;
  bool is_in_it = false;
  for (std::string line; std::getline(readme, line);) {
    if (line.starts_with("###")) is_in_it = line == "### A worked example";
    std::size_t at = 0;
    const bool is_row = is_in_it && line.starts_with("| ");
    if (!is_row || std::from_chars(line.data() + 2, line.data() + line.size(), at).ec != std::errc{}) continue;
    REQUIRE(at == file.size());
    const std::size_t first = line.find('`') + 1;
    std::istringstream bytes(line.substr(first, line.find('`', first) - first));
    for (int byte = 0; bytes >> std::hex >> byte;) file.push_back(static_cast<std::uint8_t>(byte));
  }
  return file;
}

FileVector picture_of_the_readme() {
  FileVector samples;
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < kTileSide; ++x) {
      const int green = x == 5 && y == 1 ? 111 : 100 + 2 * x;
      for (const int sample : {green + 7, green, green}) samples.push_back(static_cast<std::uint8_t>(sample));
    }
  }
  return samples;
}

}  // namespace

TEST_CASE("the worked example is what is written, and is read", "[l3]") {
  const FileVector example = example_of_the_readme(), picture = picture_of_the_readme();
  const Size size{kTileSide, 2};
  FileVector file, pixels(picture.size());

  REQUIRE(encode({.samples = {picture.data(), size, 3, 1, 96}}, Effort::kBest, Target::kScalar, file).empty());

  REQUIRE(file.size() == 116);
  REQUIRE(file == example);
  const PaddedFile padded(example);
  Image image;
  REQUIRE(image.read(padded.view(), Check::kChecksums).empty());
  const Outcome outcome =
      Decoder(Target::kScalar).decode(image, whole(size), Form::kStored, {}, {pixels.data(), size, 3, 1, 96});
  REQUIRE(outcome.is_fine());
  REQUIRE(pixels == picture);
}

}  // namespace millrace::kernels::l3
