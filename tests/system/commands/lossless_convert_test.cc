// millrace convert --to l3 and --to png: pictures without loss to L3 files and back.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

Ran convert_pictures(const std::string& to, const std::string& from, const std::string& into,
                     const std::vector<std::string>& more = {}) {
  std::vector<std::string> argv{"millrace", "convert", "--to", to, from, into, "--json"};
  argv.insert(argv.end(), more.begin(), more.end());
  return run(argv);
}

int told(const Ran& ran, const char* what) {
  return parsed(ran.output).get<int>(what);
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

// A picture of each kind that is converted.
void write_lossless(const std::string& folder) {
  fs::create_directories(folder);
  const Pixels rgb = make_pixels(70, 50, 3, 1);
  write_file(folder + "/png.png", make_png({.pixels = rgb, .exif_orientation = 6}));
  write_file(folder + "/grey.png", make_png({.pixels = make_pixels(33, 64, 1, 2), .interlaced = true}));
  write_file(folder + "/alpha.PNG", make_png({.pixels = make_pixels(40, 41, 4, 3)}));
  write_file(folder + "/pnm.ppm", make_pnm({.pixels = rgb}));
  write_file(folder + "/bmp.bmp", make_bmp({.pixels = rgb}));
  write_file(folder + "/tiff.tif", make_tiff({.pixels = rgb}));
  write_file(folder + "/webp.webp", make_webp({.pixels = rgb, .lossless = true}));
}

TEST_CASE("a folder of lossless pictures becomes L3 files, and PNG files", "[system]") {
  const TempFolder folder;
  write_lossless(folder / "in");
  write_file(folder / "in/twice.png", make_png({.pixels = make_pixels(9, 9, 3, 4)}));
  write_file(folder / "in/twice.bmp", make_bmp({.pixels = make_pixels(9, 9, 3, 5)}));
  write_file(folder / "in/photo.jpg", make_jpeg({.pixels = make_pixels(9, 9, 3, 6)}));
  write_file(folder / "in/notes.txt", std::string("a note"));

  const Ran there = convert_pictures("l3", folder / "in", folder / "l3");
  const Ran back = convert_pictures("png", folder / "l3", folder / "back");
  const Ran again = convert_pictures("l3", folder / "back", folder / "again");

  CAPTURE(there.errors, there.output, back.errors);
  REQUIRE(there.status == 0);
  REQUIRE(back.status == 0);
  REQUIRE(told(there, "converted") == 9);
  REQUIRE(told(there, "copied") == 2);
  REQUIRE((names_in(folder / "l3") == std::set<std::string>{"alpha.l3", "bmp.l3", "grey.l3", "notes.txt", "photo.jpg",
                                                            "png.l3", "pnm.l3", "tiff.l3", "twice.bmp.l3",
                                                            "twice.png.l3", "webp.l3"}));
  REQUIRE(names_in(folder / "back").count("twice.bmp.png") == 1);
  REQUIRE(again.status == 0);
  for (const std::string& name : names_in(folder / "l3")) {  // the PNG files hold the very same pictures
    CAPTURE(name);
    REQUIRE((read_file(folder / ("l3/" + name)) == read_file(folder / ("again/" + name))));
  }
}

TEST_CASE("broken PNG files are named, and all others become L3 and PNG again", "[system]") {
  const auto suite = test_data("png-suite");
  if (!suite) return;
  const TempFolder folder;

  const Ran there = convert_pictures("l3", *suite, folder / "a");
  const Ran back = convert_pictures("png", folder / "a", folder / "b");

  CAPTURE(there.errors, back.errors);
  REQUIRE(there.status == 1);
  REQUIRE(back.status == 0);
  REQUIRE(told(there, "failed") == 14);
  REQUIRE(told(back, "converted") == told(there, "converted"));
  const std::set<std::string> before = names_in(*suite), after = names_in(folder / "b");
  for (const std::string& name : before) {
    CAPTURE(name);
    const bool broken = name.starts_with('x');
    REQUIRE(after.count(name) == (broken ? 0 : 1));
    REQUIRE((there.errors.find(name + " is damaged: ") != there.errors.npos) == broken);
  }
}

TEST_CASE("an L3 file that is there counts if it is the same picture, however it was made", "[system]") {
  const TempFolder folder;
  write_lossless(folder / "in");
  const int files = told(convert_pictures("l3", folder / "in", folder / "out", {"--effort", "fast"}), "converted");

  SECTION("all of them are") {
    const Ran again = convert_pictures("l3", folder / "in", folder / "out", {"--effort", "best"});

    REQUIRE(again.status == 0);
    REQUIRE(told(again, "there_before") == files);
  }
  SECTION("another picture, and a damaged file, stay and are named") {
    fs::remove(folder / "out/png.l3");
    fs::copy_file(folder / "out/grey.l3", folder / "out/png.l3");
    auto bytes = read_file(folder / "out/bmp.l3");
    bytes.back() ^= std::byte{1};
    write_file(folder / "out/bmp.l3", bytes);

    const Ran again = convert_pictures("l3", folder / "in", folder / "out");

    REQUIRE(again.status == 1);
    REQUIRE(told(again, "failed") == 2);
    REQUIRE_THAT(again.errors,
                 Catch::Contains("out/png.l3 is there already") && Catch::Contains("out/bmp.l3 is there already"));
    REQUIRE((read_file(folder / "out/bmp.l3") == bytes));
  }
}

TEST_CASE("--delete takes lossless pictures whose L3 files were read back", "[system]") {
  const TempFolder folder;
  write_lossless(folder / "in");
  write_file(folder / "in/broken.png", std::string("\x89PNG\r\n\x1a\n and nothing else"));

  const Ran ran = convert_pictures("l3", folder / "in", folder / "out", {"--delete"});

  CAPTURE(ran.errors);
  REQUIRE(ran.status == 1);
  REQUIRE(told(ran, "deleted") == 7);
  REQUIRE((names_in(folder / "in") == std::set<std::string>{"broken.png"}));
}

TEST_CASE("a damaged L3 file does not become a PNG file, and the others do", "[system]") {
  const TempFolder folder;
  write_lossless(folder / "in");
  REQUIRE(convert_pictures("l3", folder / "in", folder / "out").status == 0);
  auto bytes = read_file(folder / "out/png.l3");
  bytes[bytes.size() / 2] ^= std::byte{4};
  write_file(folder / "out/png.l3", bytes);
  write_file(folder / "out/text.l3", std::string("no picture"));

  const Ran ran = convert_pictures("png", folder / "out", folder / "back");

  CAPTURE(ran.errors);
  REQUIRE(ran.status == 1);
  REQUIRE(told(ran, "failed") == 2);
  REQUIRE(told(ran, "converted") == 6);
  REQUIRE_THAT(ran.errors, Catch::Contains("out/png.l3 is damaged: the checksum of its") &&
                               Catch::Contains("out/text.l3 is damaged: it does not begin as an L3 file does"));
}

TEST_CASE("version 1 of L3 takes what it holds, and copies the rest with the reason", "[system]") {
  const TempFolder folder;
  fs::create_directories(folder / "in");
  write_file(folder / "in/held.png", make_png({.pixels = make_pixels(128, 64, 3, 1)}));
  write_file(folder / "in/odd.png", make_png({.pixels = make_pixels(100, 64, 3, 1)}));
  write_file(folder / "in/turned.png", make_png({.pixels = make_pixels(64, 64, 3, 1), .exif_orientation = 3}));

  const Ran ran = convert_pictures("l3", folder / "in", folder / "out", {"--version", "1"});
  const Ran back = convert_pictures("png", folder / "out", folder / "back");

  CAPTURE(ran.errors, ran.output);
  REQUIRE(ran.status == 0);
  REQUIRE(parsed(ran.output).get<int>("why_copied.no_version_1") == 2);
  REQUIRE(names_in(folder / "out") == std::set<std::string>{"held.l3", "odd.png", "turned.png"});
  const auto file = read_file(folder / "out/held.l3");
  REQUIRE((std::string(reinterpret_cast<const char*>(file.data()), 4) == "LLL."));
  REQUIRE(told(back, "converted") == 1);
}

TEST_CASE("options of L3 files belong to --to l3", "[system]") {
  const TempFolder folder;
  write_lossless(folder / "in");
  const auto status = [&](const std::string& to, const std::vector<std::string>& more) {
    return convert_pictures(to, folder / "in", folder / "out", more).status;
  };

  REQUIRE(status("png", {"--effort", "fast"}) == 2);
  REQUIRE(status("packed", {"--version", "1"}) == 2);
  REQUIRE(status("l3", {"--version", "3"}) == 2);
  REQUIRE(status("l3", {"--effort", "good"}) == 2);
  REQUIRE(status("l3", {"--version", "1", "--effort", "fast"}) == 2);
}

}  // namespace
}  // namespace millrace
