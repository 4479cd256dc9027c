// What the CUDA benchmark and the maker of its checksums share.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "tests/bench/cuda/checksum_file.h"
#include "tests/bench/cuda/image_files.h"
#include "tests/support/host/temp_folder.h"

namespace millrace::kernels::cuda::bench {
namespace {

using kernels::Box;
using kernels::Flip;

TEST_CASE("checksum lines are read as they were written", "[cuda][bench]") {
  const ChecksumLine lines[] = {{&kRecipes[0], {1, 2, 3, 4}, Flip::kHorizontal, 0x00ab, "a folder/a file.jpg"},
                                {&kRecipes[3], {0, 0, 65500, 1}, Flip::kNone, std::nullopt, "b.jpg"},
                                {&kRecipes[1], {7, 8, 9, 10}, Flip::kNone, ~std::uint64_t{0}, "-"}};
  std::stringstream text;
  for (const ChecksumLine& line : lines) write_line(text, line);
  std::string wrong;

  const auto read = read_lines(text, wrong);

  REQUIRE(read);
  REQUIRE(read->size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE((*read)[i].recipe == lines[i].recipe);
    REQUIRE((*read)[i].crop == lines[i].crop);
    REQUIRE((*read)[i].flip == lines[i].flip);
    REQUIRE((*read)[i].sum == lines[i].sum);
    REQUIRE((*read)[i].path == lines[i].path);
  }
}

TEST_CASE("a line that is no checksum line is named", "[cuda][bench]") {
  const std::string good = std::string(kRecipes[0].name) + " 1 2 3 4 0 00000000000000ab a.jpg";
  std::string wrong;
  std::istringstream fine(good);
  REQUIRE(read_lines(fine, wrong));
  for (const std::string& bad : {std::string("unknown 1 2 3 4 0 ab a.jpg"), good.substr(0, good.size() - 6),
                                 std::string(kRecipes[0].name) + " 1 2 3 4 0 00xy a.jpg", std::string()}) {
    std::istringstream text(good + "\n" + bad + "\n");
    REQUIRE_FALSE(read_lines(text, wrong));
    REQUIRE(wrong == bad);
  }
}

TEST_CASE("the checksum is FNV-1a's", "[cuda][bench]") {
  const auto sum = [](const std::string& text) {
    return fnv1a({reinterpret_cast<const std::byte*>(text.data()), text.size()});
  };
  REQUIRE(sum("") == 0xcbf29ce484222325);
  REQUIRE(sum("a") == 0xaf63dc4c8601ec8c);
  REQUIRE(sum("foobar") == 0x85944171f73967e8);
}

TEST_CASE("random crops lie inside their images, however narrow", "[cuda][bench]") {
  std::mt19937 random(1);
  for (const kernels::Size size : {kernels::Size{1, 1}, {500, 375}, {1, 1000}, {3000, 2}, {7, 5}}) {
    for (int i = 0; i < 200; ++i) {
      const Box box = random_resized_crop(size, random);
      REQUIRE((box.left >= 0 && box.top >= 0 && box.width >= 1 && box.height >= 1));
      REQUIRE(box.left + box.width <= size.width);
      REQUIRE(box.top + box.height <= size.height);
    }
  }
}

TEST_CASE("files of a folder and of those in it come by path", "[cuda][bench]") {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "a");
  for (const char* const name : {"b.jpg", "a/z.jpg"}) std::ofstream(folder / name) << name;

  const auto files = read_files(folder.path());

  REQUIRE(files.size() == 2);
  REQUIRE(files[0].path == "a/z.jpg");
  REQUIRE(std::string(files[1].bytes.begin(), files[1].bytes.end()) == "b.jpg");
}

}  // namespace
}  // namespace millrace::kernels::cuda::bench
