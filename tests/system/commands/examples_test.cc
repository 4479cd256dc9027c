// The programs in client/examples, run as a user runs them who starts from one: against a daemon, and what they print.
#include <catch2/catch.hpp>
#include <sstream>

#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/daemon.h"

namespace millrace {
namespace {

// 70 pictures in four classes, and a daemon for them.
struct ExampleMill {
  ExampleMill()
      : paths(write_image_folder(pictures, {.images = 70, .classes = 4})), daemon({.roots = {folder.path()}}) {}

  // The lines that the example prints.
  std::vector<std::string> run(const std::string& example, const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv{bin_folder() + "/../examples/example_" + example};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const Process process = Process::spawn({.argv = argv, .env = {{"MILLRACE_SOCKET", daemon.socket()}}});
    const auto status = process.wait();
    CAPTURE(process.errors());
    REQUIRE(status == 0);
    std::istringstream output(process.output());
    std::vector<std::string> lines;
    for (std::string line; std::getline(output, line);) lines.push_back(line);
    return lines;
  }

  TempFolder folder;
  std::string pictures = folder / "pictures";
  std::vector<std::string> paths;
  Daemon daemon;
};

}  // namespace

TEST_CASE("the example of ten lines brings every image of a folder", "[system]") {
  const ExampleMill mill;

  const auto lines = mill.run("ten_lines", {mill.pictures});

  REQUIRE(lines == std::vector<std::string>{"64 images, 9633792 bytes, 0 bad", "6 images, 903168 bytes, 0 bad"});
}

TEST_CASE("the example of an epoch goes on where it was interrupted", "[system]") {
  const ExampleMill mill;
  const std::string position = mill.folder / "position", other = mill.folder / "other";

  const auto whole = mill.run("epoch", {mill.pictures, other});
  const auto first = mill.run("epoch", {mill.pictures, position, "1"});
  const auto rest = mill.run("epoch", {mill.pictures, position});

  REQUIRE(whole.size() == 4);
  REQUIRE(whole[0] == "3 batches, beginning at 0");
  REQUIRE_THAT(whole[3], Catch::StartsWith("batch 2: 6 images, first label "));
  REQUIRE(first == std::vector<std::string>{whole[0], whole[1]});
  REQUIRE(rest == std::vector<std::string>{"3 batches, beginning at 1", whole[2], whole[3]});
}

TEST_CASE("the example of serving makes a tensor of each image, large ones through the ring, and names the bad one",
          "[system]") {
  const ExampleMill mill;
  const std::string large = mill.folder / "large.png", bad = mill.folder / "bad.jpg";
  write_file(large, make_png({.pixels = make_pixels(640, 480, 3, 5)}));
  write_file(bad, std::string("this is not an image"));
  REQUIRE(read_file(large).size() > 64 * 1024);  // what the example sends inside the message at the most

  const auto lines = mill.run("serve", {mill.paths[0], large, bad, mill.paths[1]});

  REQUIRE(lines.size() == 4);
  REQUIRE_THAT(lines[0], Catch::StartsWith(mill.paths[0] + ": 150528 floats from "));
  REQUIRE_THAT(lines[1], Catch::StartsWith(large + ": 150528 floats from 640 x 480 pixels"));
  REQUIRE_THAT(lines[2], Catch::StartsWith(bad + ": ") && Catch::Contains("not an image"));
  REQUIRE_THAT(lines[3], Catch::StartsWith(mill.paths[1] + ": 150528 floats from "));
}

}  // namespace millrace
