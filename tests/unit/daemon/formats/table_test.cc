// The table of formats: what its rows say is what the rest of the daemon does.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "daemon/formats/format_table.h"
#include "tests/support/jpeg/mrp_file.h"
#include "tests/support/pictures/heic_files.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

std::vector<std::byte> file_of(ImageFormat format) {
  const Pixels pixels = make_pixels(40, 30, 3, 1);
  switch (format) {
    case ImageFormat::kJpeg:
      return make_jpeg({.pixels = pixels});
    case ImageFormat::kPng:
      return make_png({.pixels = pixels});
    case ImageFormat::kWebp:
      return make_webp({.pixels = pixels});
    case ImageFormat::kPacked:
      return make_mrp(make_jpeg({.pixels = pixels}));
    case ImageFormat::kPnm:
      return make_pnm({.pixels = pixels});
    case ImageFormat::kBmp:
      return make_bmp({.pixels = pixels});
    case ImageFormat::kGif:
      return make_gif({.pixels = make_pixels(40, 30, 1, 1)});
    case ImageFormat::kTiff:
      return make_tiff({.pixels = pixels});
    case ImageFormat::kAvif:
      return can_make_avif() ? make_avif({.pixels = pixels}) : std::vector<std::byte>{};
    case ImageFormat::kHeic:
      return heic_file("colour");
    case ImageFormat::kL3:
      return make_l3({.pixels = pixels});
  }
  return {};
}

TEST_CASE("a file is recognised by its own format's row and by no other", "[formats]") {
  for (const Format& own : kFormats) {
    const std::vector<std::byte> file = file_of(own.format);
    if (file.empty()) continue;
    for (const Format& other : kFormats) {
      CAPTURE(own.title, other.title);

      REQUIRE(other.recognises(ByteReader(file)) == (own.format == other.format));
    }
  }
}

TEST_CASE("a row is found by its format, and reads its files", "[formats]") {
  for (const Format& row : kFormats) {
    const std::vector<std::byte> file = file_of(row.format);
    if (file.empty()) continue;

    REQUIRE(format_of(row.format).format == row.format);
    REQUIRE(format_of(row.format).read_header(ByteReader(file), Metadata::kRead)->size == Size{40, 30});
  }
}

TEST_CASE("no two formats have a name or a file ending in common, and all are in lower case", "[formats]") {
  std::vector<std::string> words(kPictureExtensions.begin(), kPictureExtensions.end());
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);

  for (std::vector<std::string>* all : {&words, &names}) {
    for (const std::string& word : *all) {
      CAPTURE(word);
      REQUIRE_FALSE(word.empty());
      REQUIRE(word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos);
    }
    std::sort(all->begin(), all->end());
    REQUIRE(std::adjacent_find(all->begin(), all->end()) == all->end());
  }
}

}  // namespace
}  // namespace millrace
