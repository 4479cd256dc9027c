// The tests' own tools: a tool that lies makes every test lie.
#include <catch2/catch.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <jpeglib.h>
#include <spng.h>
#include <webp/decode.h>

#include "tests/support/host/eventually.h"
#include "tests/support/host/process.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

const std::uint8_t* octets(const std::vector<std::byte>& bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

double mean_difference(const Pixels& a, const std::vector<std::uint8_t>& b) {
  REQUIRE(a.data.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += std::abs(a.data[i] - b[i]);
  return sum / static_cast<double>(b.size());
}

TEST_CASE("pixels depend on the seed and on nothing else", "[support]") {
  const Pixels first = make_pixels(37, 21, 3, 5);

  REQUIRE(first.data.size() == 37 * 21 * 3);
  REQUIRE(make_pixels(37, 21, 3, 5).data == first.data);
  REQUIRE(make_pixels(37, 21, 3, 6).data != first.data);
}

TEST_CASE("a made JPEG decodes to nearly the pixels that went in", "[support]") {
  const Pixels pixels = make_pixels(67, 45, 3, 1);
  for (const bool progressive : {false, true}) {
    const auto bytes = make_jpeg(
        {.pixels = pixels, .quality = 98, .h_samp = 1, .v_samp = 1, .progressive = progressive, .restart_interval = 3});

    jpeg_decompress_struct jpeg{};
    jpeg_error_mgr errors{};
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, octets(bytes), bytes.size());
    jpeg_read_header(&jpeg, TRUE);
    REQUIRE((jpeg.progressive_mode == TRUE) == progressive);
    jpeg_start_decompress(&jpeg);
    std::vector<std::uint8_t> decoded(pixels.data.size());
    while (jpeg.output_scanline < jpeg.output_height) {
      JSAMPROW row = decoded.data() + std::size_t{jpeg.output_scanline} * 67 * 3;
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    REQUIRE(mean_difference(pixels, decoded) < 3);
  }
}

TEST_CASE("a made PNG decodes to the pixels that went in, plain and interlaced, with its EXIF", "[support]") {
  const bool interlaced = GENERATE(false, true);
  const Pixels pixels = make_pixels(33, 17, 4, 2);
  const auto bytes = make_png({.pixels = pixels, .interlaced = interlaced, .exif_orientation = 6});

  spng_ctx* png = spng_ctx_new(0);
  spng_set_png_buffer(png, bytes.data(), bytes.size());
  std::vector<std::uint8_t> decoded(pixels.data.size());
  REQUIRE(spng_decode_image(png, decoded.data(), decoded.size(), SPNG_FMT_RGBA8, 0) == 0);
  spng_ihdr header{};
  spng_get_ihdr(png, &header);
  REQUIRE((header.interlace_method != 0) == interlaced);
  spng_exif exif{};
  REQUIRE(spng_get_exif(png, &exif) == 0);
  REQUIRE(exif.data[18] == 6);
  spng_ctx_free(png);
  REQUIRE(decoded == pixels.data);
}

TEST_CASE("a made lossless WebP decodes to the pixels that went in, with its EXIF", "[support]") {
  const Pixels pixels = make_pixels(29, 31, 3, 3);
  const auto bytes = make_webp({.pixels = pixels, .lossless = true, .exif_orientation = 3});

  int width = 0, height = 0;
  std::uint8_t* decoded = WebPDecodeRGB(octets(bytes), bytes.size(), &width, &height);
  REQUIRE(decoded != nullptr);
  const std::vector<std::uint8_t> copy(decoded, decoded + pixels.data.size());
  WebPFree(decoded);

  REQUIRE((width == 29 && height == 31));
  REQUIRE(copy == pixels.data);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  REQUIRE(text.find("EXIF") != std::string::npos);
}

TEST_CASE("a folder of images holds what it says, in order of bytes", "[support]") {
  TempFolder folder;

  const auto paths = write_image_folder(folder / "set", {.images = 20, .classes = 3});

  REQUIRE(paths.size() == 20);
  REQUIRE(std::is_sorted(paths.begin(), paths.end()));
  REQUIRE(paths.front() == folder / "set/class_00/image_00000.jpg");
  for (const auto& path : paths) REQUIRE(read_file(path).size() > 100);
}

TEST_CASE("a process is heard line by line, answered, and its exit status known", "[support]") {
  Process process =
      Process::spawn({.argv = {"sh", "-c", "echo to=$GREETED; echo warned >&2; read x; echo got $x; exit 7"},
                      .env = {{"GREETED", "you"}}});

  REQUIRE(process.wait_for("to=") == "to=you");
  REQUIRE(process.wait_for("warned"));
  REQUIRE(process.running());
  REQUIRE(process.say("it"));

  REQUIRE(process.wait() == 7);
  REQUIRE(process.output() == "to=you\ngot it\n");
  REQUIRE(process.errors() == "warned\n");
  REQUIRE_FALSE(process.wait_for("never written"));
}

TEST_CASE("a killed process says by which signal, and nothing is left of it", "[support]") {
  pid_t pid = 0;
  {
    Process killed = Process::spawn({.argv = {"sleep", "1000"}});
    killed.kill(SIGTERM);
    REQUIRE(killed.wait() == 128 + SIGTERM);

    Process left = Process::spawn({.argv = {"sleep", "1000"}});
    pid = left.pid();
  }

  REQUIRE(::kill(pid, 0) == -1);
  REQUIRE(errno == ESRCH);
}

TEST_CASE("a child of the process that keeps its output open holds nobody up", "[support]") {
  Process process = Process::spawn({.argv = {"sh", "-c", "sleep 1000 & echo $!; exit 3"}});
  const auto line = process.wait_for("");

  REQUIRE(process.wait() == 3);
  REQUIRE(line);
  ::kill(std::stoi(*line), SIGKILL);
}

TEST_CASE("a program that is not there is an error of the test", "[support]") {
  REQUIRE_THROWS_AS(Process::spawn({.argv = {"/nowhere/at-all"}}), std::runtime_error);
}

TEST_CASE("what a test skips is a line of the list, with the name of its program", "[support]") {
  const TempFolder folder;
  const std::string list = folder / "list";
  const char* before = std::getenv("MILLRACE_SKIPPED");
  const std::string kept = before == nullptr ? "" : before;

  ::setenv("MILLRACE_SKIPPED", list.c_str(), 1);
  skip_loudly("this: no data");
  skip_loudly("that: not root");
  ::setenv("MILLRACE_SKIPPED", kept.c_str(), 1);

  std::ostringstream text;
  text << std::ifstream(list).rdbuf();
  REQUIRE(text.str() == "millrace_unit_support\tthis: no data\nmillrace_unit_support\tthat: not root\n");
}

TEST_CASE("eventually looks until it is so, and gives up in time", "[support]") {
  int looks = 0;

  REQUIRE(eventually([&] { return ++looks == 3; }));
  REQUIRE_FALSE(eventually([] { return false; }, std::chrono::milliseconds(5)));
}

}  // namespace
}  // namespace millrace
